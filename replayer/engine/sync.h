// How the replay's threads wait for each other: gates for the baton of `total`, positions for `deps`.
//
// Allocates nothing. Waiting spins for a moment, then sleeps in the kernel, so that a replay of many
// threads on few processors moves on. Every counter of waiting is written by the waiting thread only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heaptape::replayer::engine {

inline constexpr std::size_t cache_line_bytes = 128;  // two lines: neighbours are fetched in pairs

// Sleeps while the word is `while_equal`; `at_most_ms` 0: until woken. May wake without reason.
void futex_sleep(const void* word, std::uint32_t while_equal, std::uint32_t at_most_ms = 0) noexcept;
void futex_wake_all(const void* word) noexcept;
[[nodiscard]] std::uint64_t now_ns() noexcept;  // CLOCK_MONOTONIC

struct Waiting {
  std::uint64_t waits = 0;  // that had to block
  std::uint64_t waited_ns = 0;
};

// One thread waits, one other opens. Opening publishes all that the opener did before.
class alignas(cache_line_bytes) Gate {
 public:
  // Cost: an exchange; with a sleeper a system call.
  void open() noexcept {
    // Partner: the acquire loads in pass().
    if (state_.exchange(opened, std::memory_order_acq_rel) == asleep) futex_wake_all(&state_);
  }
  void pass(Waiting& waiting) noexcept;

 private:
  static constexpr std::uint32_t closed = 0;
  static constexpr std::uint32_t opened = 1;
  static constexpr std::uint32_t asleep = 2;
  std::atomic<std::uint32_t> state_{closed};
};

// How many of its ops a thread has done, as others see it. Written by its thread only.
class alignas(cache_line_bytes) Position {
 public:
  // Cost: a store and a load of a line of its own. The fence that a sleeper needs is paid by the
  // sleeper (membarrier), see wait().
  void publish(std::uint64_t done) noexcept {
    done_.store(done, std::memory_order_release);  // partner: the acquire loads in reached(), wait()
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) != 0) futex_wake_all(&done_);
  }
  // The position, if it is at least `needed`; else 0. A position waited for is never 0.
  [[nodiscard]] std::uint64_t reached(std::uint64_t needed) const noexcept {
    const std::uint64_t done = done_.load(std::memory_order_acquire);  // partner: publish()
    return done >= needed ? done : 0;
  }
  // Blocks until the position is at least `needed`; returns it.
  [[nodiscard]] std::uint64_t wait(std::uint64_t needed, Waiting& waiting) noexcept;

 private:
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint32_t> sleepers_{0};  // partner: the load in publish(), ordered by membarrier
};

// Counts threads in; one waits until enough have come.
class Rendezvous {
 public:
  void arrive() noexcept;
  void wait_for(std::uint32_t threads) noexcept;

 private:
  std::atomic<std::uint32_t> arrived_{0};  // partner: wait_for()
};

// Holds every thread back until it is opened; stays open.
class Latch {
 public:
  void wait() noexcept;
  void open() noexcept;

 private:
  std::atomic<std::uint32_t> opened_{0};  // partner: wait()
};

// Once per process, before any Position is waited for.
void prepare_waiting() noexcept;

}  // namespace heaptape::replayer::engine
