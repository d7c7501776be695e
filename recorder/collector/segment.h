// The rings of one recorded process: memory, control page, and a reserve of free rings.
//
// Guarantees: a ring is offered only when its pages exist, so the program never faults for memory
// that is not there; there are always some free rings ahead of demand, until the segment or the
// system's memory is used up, which `exhausted` then tells the program. What the program writes is
// never trusted here: states are read once, and indices checked. Called by one thread.
#pragma once

#include <cstdint>

#include "format/base/error.h"
#include "format/tape.h"
#include "recorder/collector/options.h"
#include "recorder/collector/shared_memory.h"
#include "recorder/ring/layout.h"
#include "recorder/ring/protocol.h"

namespace heaptape::collector {

struct SegmentOptions {
  std::uint32_t ring_count = ring::default_ring_count;
  format::ClockSource clock = format::ClockSource::tsc;
  format::StackMode stacks = format::StackMode::none;
  Overflow overflow = Overflow::block;
  std::uint64_t start_tick = 0;
};

// How many rings fit a program that may map no more than `address_space_limit_bytes`, made by a
// collector whose files, shared memory too, may grow to `file_limit_bytes`. Without limits: UINT64_MAX.
[[nodiscard]] std::uint32_t ring_count_within(std::uint64_t address_space_limit_bytes,
                                              std::uint64_t file_limit_bytes) noexcept;

class Segment {
 public:
  static constexpr std::uint32_t smallest_reserve = 8;
  static constexpr std::uint32_t largest_reserve = 256;  // 34 MB
  static constexpr std::uint32_t most_waiting = 1024;
  // Most processes live for a millisecond or two, with one thread: they begin with less.
  static constexpr std::uint32_t first_reserve = 3;
  static constexpr std::uint32_t first_passes = 4;

  // With the first reserve of free rings. Errors: system.
  [[nodiscard]] static format::Result<Segment> create(const SegmentOptions& options);

  [[nodiscard]] const ring::SegmentView& view() const noexcept { return view_; }
  [[nodiscard]] ring::Control& control() const noexcept { return view_.control(); }
  [[nodiscard]] int fd() const noexcept { return memory_.fd(); }
  [[nodiscard]] ring::Welcome welcome() const noexcept;

  // Rings [0, high) have pages; all others are absent.
  [[nodiscard]] std::uint32_t high() const noexcept { return high_; }
  // Partner: the release store in ring::leave_ring, the claim in ring::claim_ring.
  [[nodiscard]] ring::RingState state(std::uint32_t index) const noexcept {
    return ring::RingState{view_.state(index).load(std::memory_order_acquire)};
  }
  // Offers a drained ring to the next thread. Partner: the compare-and-swap in ring::claim_ring.
  void offer(std::uint32_t index) noexcept {
    view_.state(index).store(static_cast<std::uint32_t>(ring::RingState::free), std::memory_order_release);
  }

  // Adds rings until enough are free for those in use and for threads that wait. A reserve that
  // nearly ran out is doubled, and stays so. Returns how many are free.
  std::uint32_t keep_reserve();
  // Lets the clock word show the present.
  void advance_clock() noexcept;
  // Lets threads that wait for room look again: as many as can have found some, not all at once.
  void wake_waiting(std::uint32_t most) noexcept;
  // Recording is over for this process, whatever it does; waiting threads carry on at once.
  void stop() noexcept;

  [[nodiscard]] format::RecorderStats stats() const noexcept;

 private:
  Segment(SharedMemory memory, std::uint32_t ring_count) noexcept
      : memory_(std::move(memory)), view_(memory_.bytes().data(), ring_count) {}
  void add_ring();

  SharedMemory memory_;
  ring::SegmentView view_;
  std::uint32_t high_ = 0;
  std::uint32_t reserve_ = first_reserve;
  std::uint32_t passes_ = 0;  // up to first_passes
  bool memory_is_short_ = false;
};

}  // namespace heaptape::collector
