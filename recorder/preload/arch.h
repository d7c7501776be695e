// What depends on the processor: system calls that neither set errno nor are cancellation points,
// the time stamp counter, the stack pointer. x86-64.
#pragma once

#include <cstdint>

#ifndef __x86_64__
#error "The recorder knows x86-64 only."
#endif

namespace heaptape::preload::arch {

// A plain time stamp: may be taken ahead of loads that come before it in program order, so only ever
// too early. About 11 ns on the machines measured.
[[gnu::always_inline]] inline std::uint64_t stamp() noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return std::uint64_t{high} << 32 | low;
}
// A stamp not earlier than the load that delivered the pointer about to be released. About 22 ns.
[[gnu::always_inline]] inline std::uint64_t fenced_stamp() noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
  return std::uint64_t{high} << 32 | low;
}

// Smaller in a callee than in its callers, as long as they share a stack.
[[gnu::always_inline]] inline std::uintptr_t stack_pointer() noexcept {
  std::uintptr_t sp = 0;
  asm volatile("mov %%rsp, %0" : "=r"(sp));
  return sp;
}

// The raw result: a negated errno between -4095 and -1.
[[gnu::always_inline]] inline long call6(long number, long a, long b, long c, long d, long e,
                                         long f) noexcept {
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace heaptape::preload::arch
