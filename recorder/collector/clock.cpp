#include "recorder/collector/clock.h"

#include <time.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace heaptape::collector {

namespace {

std::int64_t read_clock(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

bool has_invariant_tsc() {
#ifdef __x86_64__
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & 1U << 8) == 0) {
    return false;
  }
  // The kernel takes "tsc" off this list when it finds the processors' counters apart.
  std::ifstream list("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  std::string name;
  bool any = false;
  while (list >> name) {
    any = true;
    if (name == "tsc") {
      return true;
    }
  }
  return !any;  // no /sys (a container): the processor's own word
#else
  return false;
#endif
}

}  // namespace

format::ClockSource choose_clock() {
  const char* wish = std::getenv("HEAPTAPE_CLOCK");
  const bool sequence = wish != nullptr && std::string_view(wish) == "sequence";
  return !sequence && has_invariant_tsc() ? format::ClockSource::tsc : format::ClockSource::sequence;
}

std::uint64_t tick_now() noexcept {
#ifdef __x86_64__
  _mm_lfence();
  return __rdtsc();
#else
  return 0;
#endif
}

std::int64_t monotonic_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }
std::uint64_t unix_ns() noexcept { return static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME)); }

ClockPair clock_pair() noexcept {
  // The pair whose two readings of the counter lie closest together was not interrupted.
  ClockPair best;
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t before = tick_now();
    const std::int64_t ns = monotonic_ns();
    const std::uint64_t after = tick_now();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

double measure_ticks_per_second() noexcept {
  const ClockPair first = clock_pair();
  ClockPair last = first;
  while (last.ns - first.ns < 2'000'000) {
    last = clock_pair();
  }
  return static_cast<double>(last.tick - first.tick) * 1e9 / static_cast<double>(last.ns - first.ns);
}

}  // namespace heaptape::collector
