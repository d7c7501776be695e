// The few system calls of the preload, by their own names; results as the kernel gives them (negated
// errno on failure). None touches errno, none is a cancellation point.
#pragma once

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "recorder/preload/arch.h"

namespace heaptape::preload::sys {

template <typename T>
[[gnu::always_inline]] inline long word(T value) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else {
    return static_cast<long>(value);
  }
}
template <typename... Args>
[[gnu::always_inline]] inline long raw(long number, Args... args) noexcept {
  const long a[6] = {word(args)...};
  return arch::call6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

inline std::int32_t process_id() noexcept { return static_cast<std::int32_t>(raw(SYS_getpid)); }
inline std::int32_t parent_id() noexcept { return static_cast<std::int32_t>(raw(SYS_getppid)); }
inline std::uint32_t thread_id() noexcept { return static_cast<std::uint32_t>(raw(SYS_gettid)); }

// Null on failure.
inline void* map(std::size_t bytes, int flags, int fd) noexcept {
  const long result = raw(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  return result < 0 && result >= -4095 ? nullptr : reinterpret_cast<void*>(result);
}
inline void unmap(void* base, std::size_t bytes) noexcept { raw(SYS_munmap, base, bytes); }
inline bool advise(void* base, std::size_t bytes, int advice) noexcept {
  return raw(SYS_madvise, base, bytes, advice) == 0;
}

inline int socket(int domain, int type) noexcept {
  return static_cast<int>(raw(SYS_socket, domain, type, 0));
}
inline bool connect(int fd, const void* address, std::size_t bytes) noexcept {
  return raw(SYS_connect, fd, address, bytes) == 0;
}
inline bool set_option(int fd, int option, const void* value, std::size_t bytes) noexcept {
  return raw(SYS_setsockopt, fd, SOL_SOCKET, option, value, bytes) == 0;
}
inline long send(int fd, const void* data, std::size_t bytes) noexcept {
  return raw(SYS_sendto, fd, data, bytes, MSG_NOSIGNAL, 0, 0);
}
inline long receive(int fd, msghdr* message) noexcept {
  return raw(SYS_recvmsg, fd, message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
}
inline void close(int fd) noexcept { raw(SYS_close, fd); }

inline std::uint64_t address_space_limit_bytes() noexcept {
  rlimit limit{};
  return raw(SYS_prlimit64, 0, RLIMIT_AS, 0, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                             : UINT64_MAX;
}
inline std::uint64_t monotonic_ns() noexcept {
  timespec t{};
  raw(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

// Waits while `word` is `value`, at most `timeout_ns`; spurious returns are allowed. Shared futexes.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, long timeout_ns) noexcept {
  const timespec t{.tv_sec = 0, .tv_nsec = timeout_ns};
  raw(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &t, 0, 0);
}
inline void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept {
  raw(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, 0x7fffffff, 0, 0, 0);
}

// Blocks every signal for a scope in which the recorder's state of this thread is not in order.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    const std::uint64_t all = ~std::uint64_t{0};
    raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof before_);
  }
  ~SignalsBlocked() { raw(SYS_rt_sigprocmask, SIG_SETMASK, &before_, 0, sizeof before_); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  std::uint64_t before_ = 0;
};

// The alternate signal stack in use, as [begin, end); empty if the thread is not on it.
struct StackRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] bool contains(std::uintptr_t sp) const noexcept { return begin <= sp && sp < end; }
};
inline StackRange alternate_stack() noexcept {
  stack_t s{};
  if (raw(SYS_sigaltstack, 0, &s) != 0 || (s.ss_flags & SS_ONSTACK) == 0) {
    return {};
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(s.ss_sp);
  return {begin, begin + s.ss_size};
}

}  // namespace heaptape::preload::sys
