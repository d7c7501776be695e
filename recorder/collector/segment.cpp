#include "recorder/collector/segment.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <limits>

#include "recorder/collector/clock.h"

namespace heaptape::collector {

using ring::RingState;

namespace {

void wake(std::atomic<std::uint32_t>& word, std::uint32_t most) noexcept {
  const auto count = static_cast<int>(std::min<std::uint32_t>(most, INT_MAX));
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, count, nullptr, nullptr, 0);
}

static_assert(static_cast<int>(ring::ClockSource::tsc) == static_cast<int>(format::ClockSource::tsc));
static_assert(static_cast<int>(ring::ClockSource::sequence) ==
              static_cast<int>(format::ClockSource::sequence));
static_assert(static_cast<int>(ring::Stacks::none) == static_cast<int>(format::StackMode::none));
static_assert(static_cast<int>(ring::Stacks::caller) == static_cast<int>(format::StackMode::caller));

}  // namespace

std::uint32_t ring_count_within(std::uint64_t address_space_limit_bytes,
                                std::uint64_t file_limit_bytes) noexcept {
  constexpr std::uint64_t part = 16;  // of what the program may map, in all
  const std::uint64_t bytes = std::min(address_space_limit_bytes / part, file_limit_bytes / 2);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      bytes / sizeof(ring::Ring), Segment::smallest_reserve, ring::default_ring_count));
}

format::Result<Segment> Segment::create(const SegmentOptions& options) {
  const std::size_t size = ring::segment_bytes_for(options.ring_count);
  auto memory = SharedMemory::create(size);
  if (!memory) {
    return format::Failure(std::move(memory).error());
  }
  HEAPTAPE_TRY(memory->allocate(0, ring::rings_offset(options.ring_count)));
  Segment segment(*std::move(memory), options.ring_count);
  ring::Control& control = segment.control();
  control.magic = ring::segment_magic;
  control.version = ring::layout_version;
  control.ring_count = options.ring_count;
  control.segment_bytes = size;
  control.clock = ring::ClockSource{static_cast<std::uint32_t>(options.clock)};
  control.overflow = options.overflow == Overflow::block ? ring::Overflow::block : ring::Overflow::drop;
  control.stacks = ring::Stacks{static_cast<std::uint32_t>(options.stacks)};
  // Nobody else sees the segment yet: the socket that hands it over orders these stores.
  control.clock_word.store(options.start_tick, std::memory_order_relaxed);
  control.sequence.store(options.start_tick, std::memory_order_relaxed);
  control.recording.store(static_cast<std::uint32_t>(ring::Recording::on), std::memory_order_relaxed);
  segment.keep_reserve();
  if (segment.high() == 0) {
    return format::failure(format::ExitCode::system, "no memory for rings of {} bytes", sizeof(ring::Ring));
  }
  return segment;
}

ring::Welcome Segment::welcome() const noexcept {
  ring::Welcome welcome{};
  welcome.magic = ring::protocol_magic;
  welcome.version = ring::protocol_version;
  welcome.status = ring::WelcomeStatus::accepted;
  welcome.segment_bytes = ring::segment_bytes_for(view_.ring_count());
  welcome.ring_count = view_.ring_count();
  return welcome;
}

void Segment::add_ring() {
  const std::size_t offset = ring::rings_offset(view_.ring_count()) + high_ * sizeof(ring::Ring);
  if (!memory_.allocate(offset, sizeof(ring::Ring))) {
    memory_is_short_ = true;
    return;
  }
  offer(high_);
  high_ += 1;
}

std::uint32_t Segment::keep_reserve() {
  std::uint32_t free = 0;
  std::uint32_t claimed = 0;
  for (std::uint32_t i = 0; i < high_; ++i) {
    const RingState s = state(i);
    free += static_cast<std::uint32_t>(s == RingState::free);
    claimed += static_cast<std::uint32_t>(s == RingState::claimed);
  }
  if (high_ != 0 && free <= reserve_ / 4) {
    reserve_ = std::min(reserve_ * 2, largest_reserve);  // demand runs ahead of us
  }
  if (passes_ < first_passes) {
    passes_ += 1;
  } else {
    reserve_ = std::max(reserve_, smallest_reserve);
  }
  // One for each thread that waits, or they would all be woken again and again for the few there are.
  const std::uint32_t waiting = control().waiting_producers.load(std::memory_order_relaxed);
  const std::uint32_t wanted = std::max({reserve_, (high_ - free) / 4, std::min(waiting, most_waiting)});
  memory_is_short_ = false;
  while (free < wanted && high_ < view_.ring_count() && !memory_is_short_) {
    add_ring();
    free += memory_is_short_ ? 0 : 1;
  }
  // Partner: the acquire load in ring::claim_ring: rings below have been made.
  control().ring_high.store(high_, std::memory_order_release);
  const bool at_limit = memory_is_short_ || high_ == view_.ring_count();
  control().exhausted.store(at_limit && claimed == high_ ? 1 : 0, std::memory_order_relaxed);
  return free;
}

void Segment::advance_clock() noexcept {
  ring::Control& c = control();
  const std::uint64_t tick =
      c.clock == ring::ClockSource::tsc ? tick_now() : c.sequence.load(std::memory_order_relaxed);
  c.clock_word.store(tick, std::memory_order_relaxed);
}

void Segment::wake_waiting(std::uint32_t most) noexcept {
  ring::Control& c = control();
  // Partner: the increment by a producer before it looks for room once more and sleeps on
  // room_sequence. A read-modify-write, so that our stores of tails and states come before it:
  // either we see the producer, or it sees the room.
  if (most != 0 && c.waiting_producers.fetch_add(0, std::memory_order_seq_cst) != 0) {
    c.room_sequence.fetch_add(1, std::memory_order_seq_cst);
    wake(c.room_sequence, most);
  }
}

void Segment::stop() noexcept {
  // Partner: the relaxed load of every producer before it waits.
  control().recording.store(static_cast<std::uint32_t>(ring::Recording::stopped), std::memory_order_seq_cst);
  control().room_sequence.fetch_add(1, std::memory_order_seq_cst);
  wake(control().room_sequence, INT_MAX);
}

format::RecorderStats Segment::stats() const noexcept {
  const ring::Control& c = control();
  format::RecorderStats stats;
  stats.stalls = c.stalls.load(std::memory_order_relaxed);
  stats.stalled_ns = c.stalled_ns.load(std::memory_order_relaxed);
  stats.dropped_events = c.dropped.load(std::memory_order_relaxed);
  stats.own_allocations = c.own_allocations.load(std::memory_order_relaxed);
  stats.nested_calls = c.nested_calls.load(std::memory_order_relaxed);
  stats.signal_losses = c.signal_losses.load(std::memory_order_relaxed);
  stats.lost_threads = c.lost_threads.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace heaptape::collector
