// The producer's side of one ring: how the recorded program writes events.
//
// Guarantees: a record is published whole, by one release store of `head`, or not at all, at
// whichever instruction the program dies; the writer never waits, allocates or makes a system call;
// all its stores stay inside the ring whatever the shared words say. A signal handler that writes
// through a writer in the middle of a write sees it as having no room (`busy`) and cannot tear it.
// One thread per writer. All-zero memory is a closed writer: every fast write fails. No destructor.
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/ring/layout.h"

namespace heaptape::ring {

// One event as the program knows it; everything the tape keeps of it.
struct RawEvent {
  Call call = Call::malloc;
  Phase phase = Phase::whole;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t alignment = 0;
  std::uint64_t stamp = 0;
  std::uint64_t site = 0;  // written only by a writer opened with sites
};

enum class WriteStatus : std::uint8_t {
  ok,
  full,    // no room for it now; nothing was written
  closed,  // no ring
  busy,    // the caller has interrupted a write of this writer
};

class RingWriter {
 public:
  constexpr RingWriter() noexcept = default;

  // Takes over a ring that the caller has claimed. The first record must be start() or carry_on().
  void open(Ring& ring, bool with_sites) noexcept {
    words_ = ring.words;
    head_ = ring.header.head.load(std::memory_order_relaxed);
    stamp_high_ = no_stamp;
    record_words_ = with_sites ? 3 : 2;
    site_flag_ = with_sites ? site_bit : 0;
    gap_ = 0;
    limit_ = held;
    held_limit_ = held;
  }
  [[nodiscard]] bool is_open() const noexcept { return words_ != nullptr; }
  [[nodiscard]] bool is_busy() const noexcept { return busy_ && words_ != nullptr; }

  // After a write that was left half-way for ever (a signal handler that jumped out of it): what was
  // not published never happened.
  void recover() noexcept {
    head_ = header().head.load(std::memory_order_relaxed);
    stamp_high_ = no_stamp;
    limit_ = held;
    held_limit_ = held;
    busy_ = false;
  }

  // The hot write: a record without escapes, while there is known room. False: nothing was written,
  // take write(). `call_word` is call_bits(), with the alignment's bits, without the address.
  // Cost: about 15 instructions and 7 stores to 3 cache lines, 2 branches never taken; 1 to 2 ns.
  [[nodiscard, gnu::always_inline]] bool write_fast(std::uint64_t call_word, std::uint64_t address,
                                                    std::uint64_t size_bytes, std::uint64_t stamp,
                                                    std::uint64_t site) noexcept {
    // Marked before the first look at head and limit: a signal handler that comes after the mark sees it,
    // one that comes before has written whole records, which are then counted in.
    busy_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint64_t head = head_;
    const std::uint64_t unusual =
        (address >> address_bits) | (size_bytes >> 32) | ((stamp >> 32) ^ stamp_high_);
    if (head >= limit_ || unusual != 0) [[unlikely]] {
      busy_ = false;
      return false;
    }
    Word* const at = words_ + (head & ring_mask);
    at[0].store(call_word | site_flag_ | address, std::memory_order_relaxed);
    at[1].store(size_bytes | (stamp << 32), std::memory_order_relaxed);
    at[2].store(site, std::memory_order_relaxed);  // beyond the record when there are no sites
    const std::uint64_t next = head + record_words_;
    head_ = next;
    header().head.store(next, std::memory_order_release);  // partner: RingReader::read
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy_ = false;
    return true;
  }

  // Any event, escaped as needed, after the gap record that is due, if any.
  [[nodiscard]] WriteStatus write(const RawEvent& e) noexcept {
    if (const WriteStatus s = begin(max_record_words); s != WriteStatus::ok) {
      return s;
    }
    if (gap_ != 0) {
      append(escape_word(Escape::gap, 0), gap_);
      gap_ = 0;
    }
    if (e.stamp >> 32 != stamp_high_) {
      append(escape_word(Escape::stamp, 0), e.stamp);
      stamp_high_ = e.stamp >> 32;
    }
    if (e.size_bytes >> 32 != 0) {
      append(escape_word(Escape::size, 0), e.size_bytes);
    }
    if (e.address >> address_bits != 0) {
      append(escape_word(Escape::address, 0), e.address);
    }
    std::uint64_t alignment_code = 0;
    if ((e.alignment & (e.alignment - 1)) != 0 || e.alignment > max_plain_alignment) {
      append(escape_word(Escape::alignment, 0), e.alignment);
    } else if (e.alignment != 0) {
      alignment_code = alignment_bits(e.alignment);
    }
    append(call_bits(e.call, e.phase) | alignment_code | site_flag_ | (e.address & operand_mask),
           (e.size_bytes & low_half) | (e.stamp << 32));
    if (site_flag_ != 0) {
      words_[head_ & ring_mask].store(e.site, std::memory_order_relaxed);
      head_ += 1;
    }
    finish();
    return WriteStatus::ok;
  }

  [[nodiscard]] WriteStatus start(std::uint32_t tid, std::uint64_t stamp) noexcept {
    return control(Escape::thread_start, tid, stamp);
  }
  [[nodiscard]] WriteStatus carry_on(std::uint32_t from_ring, std::uint64_t stamp) noexcept {
    return control(Escape::carry_on, from_ring, stamp);
  }
  // The last records of a ring: always fit, in room kept for them, together with a gap record.
  void end(std::uint32_t tid, std::uint64_t stamp) noexcept { last(Escape::thread_end, tid, stamp); }
  void jump(std::uint32_t to_ring, std::uint64_t stamp) noexcept { last(Escape::jump, to_ring, stamp); }

  // One event of this thread could not be written; the next write says so in its place.
  void note_dropped() noexcept { gap_ += 1; }

  // True if a good part of the ring is unread: time to wake the reader. Worth asking after each write(),
  // which comes at least twice in the length of a ring.
  [[nodiscard]] bool wants_reader() const noexcept {
    return words_ != nullptr && head_ - header().tail.load(std::memory_order_relaxed) >= ring_words / 4;
  }

  // Whether write() would find room now.
  [[nodiscard]] bool has_room() const noexcept {
    return words_ != nullptr && fits(max_record_words, header().tail.load(std::memory_order_acquire));
  }

  // While held, fast writes fail and write() works: for a caller that wants to see the next event.
  // Not to be called while busy.
  void hold() noexcept {
    if (limit_ != held) {
      held_limit_ = limit_;
      limit_ = held;
    }
  }
  // Ends hold(), if write() has not done so. A limit stays good: room only grows.
  void resume() noexcept {
    if (limit_ == held) {
      limit_ = held_limit_;
    }
  }

  // The bits of word 0 that say `alignment`, which is a power of two up to max_plain_alignment.
  [[nodiscard]] static constexpr std::uint64_t alignment_bits(std::uint64_t alignment) noexcept {
    return static_cast<std::uint64_t>(64 - __builtin_clzll(alignment)) << alignment_shift;
  }
  static constexpr std::uint64_t max_plain_alignment = std::uint64_t{1} << 61;

 private:
  static constexpr std::uint64_t low_half = 0xffffffff;
  static constexpr std::uint64_t no_stamp = ~std::uint64_t{0};  // no stamp has this upper half
  static constexpr std::uint64_t max_record_words = 13;         // gap, four extensions, a record with site
  static constexpr std::uint64_t kept_words = 8;                // padding, a gap and the last record
  static constexpr std::uint64_t fast_words = 3;
  // Values of limit_ below which no event can begin: a start() or carry_on() comes first in any ring.
  static constexpr std::uint64_t closed = 0;
  static constexpr std::uint64_t held = 1;

  [[nodiscard]] RingHeader& header() const noexcept {
    // words_ points at Ring::words.
    return *reinterpret_cast<RingHeader*>(reinterpret_cast<unsigned char*>(words_) - offsetof(Ring, words));
  }
  [[nodiscard]] std::uint64_t words_to_end() const noexcept { return ring_words - (head_ & ring_mask); }

  [[nodiscard]] std::uint64_t padding_for(std::uint64_t count) const noexcept {
    return count > words_to_end() ? words_to_end() : 0;
  }
  [[nodiscard]] bool fits(std::uint64_t count, std::uint64_t tail) const noexcept {
    return (head_ - tail) + padding_for(count) + count + kept_words <= ring_words;
  }

  // Makes `count` words in one piece writable at head_, and marks the writer busy.
  [[nodiscard]] WriteStatus begin(std::uint64_t count) noexcept {
    if (words_ == nullptr) {
      return WriteStatus::closed;
    }
    if (busy_) {
      return WriteStatus::busy;
    }
    busy_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Partner: the release store in RingReader::release: what we overwrite has been read.
    if (!fits(count, header().tail.load(std::memory_order_acquire))) {
      busy_ = false;
      return WriteStatus::full;
    }
    pad(padding_for(count));
    return WriteStatus::ok;
  }
  void pad(std::uint64_t count) noexcept {
    for (; count != 0; --count) {
      words_[head_ & ring_mask].store(escape_word(Escape::pad, 0), std::memory_order_relaxed);
      head_ += 1;
    }
  }
  void append(std::uint64_t word0, std::uint64_t word1) noexcept {
    words_[head_ & ring_mask].store(word0, std::memory_order_relaxed);
    words_[(head_ + 1) & ring_mask].store(word1, std::memory_order_relaxed);
    head_ += 2;
  }
  // Publishes all that was appended, and learns how far fast writes may go: to the end of the free
  // room, of the ring's half (so that wants_reader() is asked in time), of the ring.
  void finish() noexcept {
    header().head.store(head_, std::memory_order_release);  // partner: RingReader::read
    const std::uint64_t room = header().tail.load(std::memory_order_acquire) + ring_words - kept_words;
    const std::uint64_t half = (head_ | (ring_words / 2 - 1)) + 1;
    const std::uint64_t stop = room < half ? room : half;
    limit_ = stop - (fast_words - 1);  // a record may begin while all its words lie before `stop`
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy_ = false;
  }
  [[nodiscard]] WriteStatus control(Escape kind, std::uint64_t operand, std::uint64_t stamp) noexcept {
    if (const WriteStatus s = begin(2); s != WriteStatus::ok) {
      return s;
    }
    append(escape_word(kind, operand), stamp);
    stamp_high_ = stamp >> 32;
    finish();
    return WriteStatus::ok;
  }
  void last(Escape kind, std::uint64_t operand, std::uint64_t payload) noexcept {
    busy_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    pad(padding_for(gap_ != 0 ? 4 : 2));
    if (gap_ != 0) {
      append(escape_word(Escape::gap, 0), gap_);
      gap_ = 0;
    }
    append(escape_word(kind, operand), payload);
    header().head.store(head_, std::memory_order_release);  // partner: RingReader::read
    limit_ = closed;
    words_ = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy_ = false;
  }

  std::uint64_t head_ = 0;          // words written, those of earlier owners included
  std::uint64_t limit_ = 0;         // a fast write may begin below this; or `closed` or `held`
  Word* words_ = nullptr;           // Ring::words
  std::uint64_t stamp_high_ = 0;    // upper half of the last whole stamp in this ring
  std::uint32_t record_words_ = 0;  // 2, or 3 with sites
  bool busy_ = false;               // inside a write; set before anything of it is looked at
  std::uint64_t site_flag_ = 0;     // 0 or site_bit
  std::uint64_t gap_ = 0;           // events dropped since the last write
  std::uint64_t held_limit_ = 0;    // limit_ before hold()
};

// Claims a free ring, looking from `start` on; ring_count if there is none. No system call.
[[nodiscard]] inline std::uint32_t claim_ring(const SegmentView& segment, std::uint32_t start,
                                              std::uint32_t owner_tid) noexcept {
  // Partner: the release store of ring_high by the collector, after it has made those rings.
  std::uint32_t high = segment.control().ring_high.load(std::memory_order_acquire);
  high = high < segment.ring_count() ? high : segment.ring_count();
  for (std::uint32_t i = 0; i < high; ++i) {
    const std::uint32_t index = (start + i) % high;
    auto expected = static_cast<std::uint32_t>(RingState::free);
    StateWord& state = segment.state(index);
    if (state.load(std::memory_order_relaxed) == expected &&
        // Partner: the collector's release store of `free`: its writes to the ring are over.
        state.compare_exchange_strong(expected, static_cast<std::uint32_t>(RingState::claimed),
                                      std::memory_order_acquire, std::memory_order_relaxed)) {
      segment.ring(index).header.owner_tid.store(owner_tid, std::memory_order_relaxed);
      return index;
    }
  }
  return segment.ring_count();
}

// Gives a ring back after its last record (`state` is released or chained), or says that few will follow
// (ending).
inline void leave_ring(const SegmentView& segment, std::uint32_t ring, RingState state) noexcept {
  // Partner: the collector's acquire load: it then sees the last head.
  segment.state(ring).store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

}  // namespace heaptape::ring
