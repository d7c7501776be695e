#include "replayer/engine/sync.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <climits>

namespace heaptape::replayer::engine {

namespace {

// About two microseconds of looking: a hand-over between two running threads takes a tenth of that,
// waking a sleeper takes more.
constexpr int spins = 500;

// False where the kernel has no membarrier: sleepers then look again by themselves.
constinit std::atomic<bool> has_membarrier{false};  // set before the threads exist

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

void prepare_waiting() noexcept {
  has_membarrier.store(::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0,
                       std::memory_order_relaxed);
}

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

void futex_sleep(const void* word, std::uint32_t while_equal, std::uint32_t at_most_ms) noexcept {
  const timespec timeout{.tv_sec = at_most_ms / 1000,
                         .tv_nsec = static_cast<long>(at_most_ms % 1000) * 1'000'000};
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_equal, at_most_ms == 0 ? nullptr : &timeout, nullptr,
            0);
}

void futex_wake_all(const void* word) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Gate::pass(Waiting& waiting) noexcept {
  for (int i = 0; i < spins; ++i) {
    if (state_.load(std::memory_order_acquire) == opened) {  // partner: open()
      state_.store(closed, std::memory_order_relaxed);
      return;
    }
    relax();
  }
  const std::uint64_t begin_ns = now_ns();
  std::uint32_t expected = closed;
  if (state_.compare_exchange_strong(expected, asleep, std::memory_order_acquire)) {
    while (state_.load(std::memory_order_acquire) == asleep) futex_sleep(&state_, asleep);
  }
  state_.store(closed, std::memory_order_relaxed);
  ++waiting.waits;
  waiting.waited_ns += now_ns() - begin_ns;
}

std::uint64_t Position::wait(std::uint64_t needed, Waiting& waiting) noexcept {
  const std::uint64_t begin_ns = now_ns();
  ++waiting.waits;
  std::uint64_t done = 0;
  for (int i = 0; i < spins && done == 0; ++i) {
    done = reached(needed);
    relax();
  }
  if (done == 0) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const bool woken_surely = has_membarrier.load(std::memory_order_relaxed);
    // Either the publisher's next look at `sleepers_` sees us, or what it published before is seen by us.
    if (woken_surely) ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    for (;;) {
      const std::uint64_t seen = done_.load(std::memory_order_acquire);  // partner: publish()
      if (seen >= needed) {
        done = seen;
        break;
      }
      // The futex is the half of the position that changes with every publication.
      const auto* const low_half =
          reinterpret_cast<const char*>(&done_) + (std::endian::native == std::endian::little ? 0 : 4);
      futex_sleep(low_half, static_cast<std::uint32_t>(seen), woken_surely ? 0 : 1);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  waiting.waited_ns += now_ns() - begin_ns;
  return done;
}

void Rendezvous::arrive() noexcept {
  arrived_.fetch_add(1, std::memory_order_acq_rel);  // partner: wait_for()
  futex_wake_all(&arrived_);
}

void Rendezvous::wait_for(std::uint32_t threads) noexcept {
  for (;;) {
    const std::uint32_t arrived = arrived_.load(std::memory_order_acquire);  // partner: arrive()
    if (arrived >= threads) return;
    futex_sleep(&arrived_, arrived);
  }
}

void Latch::wait() noexcept {
  while (opened_.load(std::memory_order_acquire) == 0) futex_sleep(&opened_, 0);  // partner: open()
}

void Latch::open() noexcept {
  opened_.store(1, std::memory_order_release);  // partner: wait()
  futex_wake_all(&opened_);
}

}  // namespace heaptape::replayer::engine
