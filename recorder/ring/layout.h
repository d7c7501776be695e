// The shared memory between one recorded process and the collector.
//
// One memfd per process, made, sized, sealed and (for the rings it offers) allocated by the
// collector, mapped by the recorded program:
//
//   0                      Control            one page
//   states_offset          RingState[rings]   one 32-bit word per ring, rounded up to a page
//   rings_offset(rings)    Ring[rings]        33 pages each: a header page, then the words
//
// Control and states are allocated before the program maps them; a ring's pages are allocated before
// its state becomes `free`, and touched by the program only while it is claimed: no page fault in
// the program ever asks the memory file system for a page. Everything is a plain integer or a
// lock-free atomic, so any two compilers agree on the layout. Free-standing: no library behind it.
//
// Whom it trusts: the program applies `ring_mask` to every index and checks sizes once, at mapping;
// the collector trusts nothing (reader.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heaptape::ring {

inline constexpr std::uint64_t segment_magic = 0x31474e4952545048;  // "HPTRING1" in memory
inline constexpr std::uint32_t layout_version = 1;
inline constexpr std::size_t cache_line_bytes = 64;
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::uint64_t ring_words = 16384;  // a power of two: 128 KiB
inline constexpr std::uint64_t ring_mask = ring_words - 1;
inline constexpr std::uint32_t default_ring_count = 4096;
inline constexpr std::uint32_t max_ring_count = 65536;

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

// What a recorded call is. The values are those of the tape's kinds (the collector asserts it).
enum class Call : std::uint8_t {
  malloc = 1,
  calloc = 2,
  posix_memalign = 3,
  aligned_alloc = 4,
  memalign = 5,
  valloc = 6,
  pvalloc = 7,
  operator_new = 8,
  operator_new_array = 9,
  operator_new_nothrow = 10,
  operator_new_array_nothrow = 11,
  realloc = 16,
  reallocarray = 17,
  free = 32,
  cfree = 33,
  free_sized = 34,
  free_aligned_sized = 35,
  operator_delete = 36,
  operator_delete_array = 37,
  operator_delete_sized = 38,
  operator_delete_array_sized = 39,
  malloc_trim = 48,
};

[[nodiscard]] constexpr bool is_acquire(Call c) noexcept {
  return c >= Call::malloc && c <= Call::operator_new_array_nothrow;
}
[[nodiscard]] constexpr bool is_realloc(Call c) noexcept {
  return c == Call::realloc || c == Call::reallocarray;
}
[[nodiscard]] constexpr bool is_release(Call c) noexcept {
  return c >= Call::free && c <= Call::operator_delete_array_sized;
}
[[nodiscard]] constexpr bool is_known(Call c) noexcept {
  return is_acquire(c) || is_realloc(c) || is_release(c) || c == Call::malloc_trim;
}

// Which part of a call a record tells; the values are those of the tape's phases.
enum class Phase : std::uint8_t { whole = 0, begin = 1, end = 2, failed = 3 };

// A record is two words, or three with a call site:
//   word 0   0-47 address | 48-53 call | 54-55 phase | 56-61 log2(alignment) + 1, 0: none
//            | 62 a call site follows | 63 zero
//   word 1   0-31 size | 32-63 low half of the stamp
//   word 2   return address of the call
// What does not fit comes in escapes directly before it, published with it by one store of `head`:
//   word 0   0-47 operand | 48-55 Escape | 63 one
//   word 1   payload
// A record or escape never crosses the end of the ring: `pad` words (alone, no payload) fill it up.
enum class Escape : std::uint8_t {
  // extensions of the record that follows
  stamp = 1,      // payload: a whole stamp; its upper half holds until the next one in this ring
  size = 2,       // payload: the size, all 64 bits
  alignment = 3,  // payload: the alignment (not a power of two)
  address = 4,    // payload: the address, all 64 bits
  // records of their own
  thread_start = 16,  // operand: thread id; payload: whole stamp. First in a newly claimed ring
  thread_end = 17,    // operand: thread id; payload: whole stamp. Last before the ring is released
  carry_on = 18,      // operand: the ring that was left; payload: whole stamp. First in a chained ring
  jump = 19,          // operand: the ring where this thread carries on. Last before `chained`
  gap = 20,           // payload: how many events of this thread were dropped here
  pad = 63,           // one word
};

inline constexpr int address_bits = 48;
inline constexpr std::uint64_t operand_mask = (std::uint64_t{1} << address_bits) - 1;
inline constexpr int call_shift = 48;
inline constexpr int phase_shift = 54;
inline constexpr int alignment_shift = 56;
inline constexpr std::uint64_t site_bit = std::uint64_t{1} << 62;
inline constexpr std::uint64_t escape_bit = std::uint64_t{1} << 63;

[[nodiscard]] constexpr std::uint64_t escape_word(Escape e, std::uint64_t operand) noexcept {
  return escape_bit | (static_cast<std::uint64_t>(e) << call_shift) | (operand & operand_mask);
}
// Call, phase and alignment (a power of two or 0) of word 0.
[[nodiscard]] constexpr std::uint64_t call_bits(Call c, Phase p) noexcept {
  return (static_cast<std::uint64_t>(c) << call_shift) | (static_cast<std::uint64_t>(p) << phase_shift);
}

enum class RingState : std::uint32_t {
  absent = 0,    // no pages behind it; collector -> free
  free = 1,      // program -> claimed, by compare-and-swap
  claimed = 2,   // a thread writes; program -> any below; collector -> free if the thread is gone
  released = 3,  // the thread has ended; collector -> free or absent once drained
  chained = 4,   // the thread carries on elsewhere (a jump is last); as released
  ending = 5,    // as claimed, by a thread in its last clean-up: the collector looks often whether it is gone
};

// `head` and `tail` count words and only grow, also across owners. Each has one writer.
struct RingHeader {
  alignas(cache_line_bytes) Word head;  // words published; producer releases, reader acquires
  alignas(cache_line_bytes) Word tail;  // words consumed; reader releases, producer acquires
  alignas(cache_line_bytes) std::atomic<std::uint32_t> owner_tid;  // of the last claimer; relaxed
};
struct Ring {
  RingHeader header;
  alignas(page_bytes) Word words[ring_words];
};
static_assert(offsetof(Ring, words) == page_bytes);
static_assert(sizeof(Ring) == page_bytes + ring_words * sizeof(Word));

enum class ClockSource : std::uint32_t { tsc = 0, sequence = 1 };
enum class Overflow : std::uint32_t { block = 0, drop = 1 };
enum class Stacks : std::uint32_t { none = 0, caller = 1 };
enum class Recording : std::uint32_t { on = 1, stopped = 2 };  // stopped: for good

struct Control {
  // Written by the collector before the program sees the segment; constant after.
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t ring_count;
  std::uint64_t segment_bytes;
  ClockSource clock;
  Overflow overflow;
  Stacks stacks;
  std::uint32_t reserved;

  // Written by the collector, read by the program.
  alignas(cache_line_bytes) Word clock_word;  // a recent tick; relaxed both sides, a hint of the time
  Word heartbeat;                             // grows at every pass; relaxed: only its change matters
  std::atomic<std::uint32_t> recording;       // Recording; relaxed
  std::atomic<std::uint32_t> ring_high;       // rings [0, ring_high) have ever been free; release/acquire
  std::atomic<std::uint32_t> exhausted;       // 1: no further ring will become free soon; relaxed

  // Stamps when clock is `sequence`: fetch_add by the program; the collector reads it for watermarks.
  alignas(cache_line_bytes) Word sequence;

  // Sleeping and waking; all futex words of the shared kind.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> collector_dozes;  // 1: wake me when a ring fills
  std::atomic<std::uint32_t> waiting_producers;  // program: how many threads wait for room
  std::atomic<std::uint32_t> room_sequence;      // collector: +1 and wake after making room for waiters

  // Counted by the program (relaxed), read by the collector at any time.
  alignas(cache_line_bytes) Word own_allocations;  // allocations by the recorder itself: must stay 0
  Word nested_calls;   // calls that belong to an outer recorded call, hence no event of their own
  Word signal_losses;  // events of signal handlers that interrupted the writing of an event
  Word lost_threads;   // threads that never got a ring
  Word stalls;         // waits for room (block)
  Word stalled_ns;     // and how long they took
  Word dropped;        // events not recorded for want of room, or of a ring
};
static_assert(sizeof(Control) <= page_bytes);
static_assert(sizeof(RingState) == 4);

using StateWord = std::atomic<std::uint32_t>;  // of RingState; see there who may change what

inline constexpr std::size_t states_offset = page_bytes;
[[nodiscard]] constexpr std::size_t rings_offset(std::uint32_t ring_count) noexcept {
  const std::size_t bytes = ring_count * sizeof(StateWord);
  return states_offset + (bytes + page_bytes - 1) / page_bytes * page_bytes;
}
[[nodiscard]] constexpr std::size_t segment_bytes_for(std::uint32_t ring_count) noexcept {
  return rings_offset(ring_count) + ring_count * sizeof(Ring);
}

// Where things are in a mapped segment. `base` must be page-aligned and live as long as the view.
class SegmentView {
 public:
  constexpr SegmentView() noexcept = default;
  SegmentView(void* base, std::uint32_t ring_count) noexcept
      : base_(static_cast<unsigned char*>(base)), ring_count_(ring_count) {}

  [[nodiscard]] Control& control() const noexcept { return *reinterpret_cast<Control*>(base_); }
  [[nodiscard]] StateWord& state(std::uint32_t ring) const noexcept {
    return reinterpret_cast<StateWord*>(base_ + states_offset)[ring];
  }
  [[nodiscard]] Ring& ring(std::uint32_t index) const noexcept {
    return reinterpret_cast<Ring*>(base_ + rings_offset(ring_count_))[index];
  }
  [[nodiscard]] std::uint32_t ring_count() const noexcept { return ring_count_; }
  [[nodiscard]] explicit operator bool() const noexcept { return base_ != nullptr; }

 private:
  unsigned char* base_ = nullptr;
  std::uint32_t ring_count_ = 0;
};

}  // namespace heaptape::ring
