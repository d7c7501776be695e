// The collector's side of one ring: decodes what a possibly hostile program has written.
//
// Guarantees: every shared word is copied once and only the copy is looked at; no word, head or
// state makes the reader loop without end, read outside the ring or yield an unknown call; whatever
// cannot be is damage, and stops this ring for good. Stamps of the events that come out of one ring
// claim never decrease. Never allocates. One thread per reader.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "recorder/ring/layout.h"

namespace heaptape::ring {

// One decoded record.
struct RingRecord {
  enum class Type : std::uint8_t { event, thread_start, thread_end, carry_on, jump, gap };

  Type type = Type::event;
  Call call = Call::malloc;      // event
  Phase phase = Phase::whole;    // event
  std::uint64_t stamp = 0;       // all but gap
  std::uint64_t address = 0;     // event
  std::uint64_t size_bytes = 0;  // event
  std::uint64_t alignment = 0;   // event
  std::uint64_t site = 0;        // event; 0: none
  std::uint64_t value =
      0;  // thread_start, thread_end: thread id; carry_on, jump: ring index; gap: events lost

  friend bool operator==(const RingRecord&, const RingRecord&) = default;
};

enum class ReadStatus : std::uint8_t {
  drained,  // everything published so far has been read
  more,     // the output is full
  ended,    // a thread_end or jump was the last record: nothing follows until the ring is claimed again
  damaged,  // an impossible word: read no further
};

struct ReadResult {
  std::size_t count = 0;  // records written to the output
  ReadStatus status = ReadStatus::drained;
};

class RingReader {
 public:
  // Begins where the ring's tail stands: 0 in a new segment.
  RingReader(Ring& ring, std::uint32_t ring_count) noexcept : ring_(&ring), ring_count_(ring_count) {}

  // Decodes at most `room` records. Stops behind thread_end and jump; call again to go on, once the
  // ring's state says that it was given back (what follows belongs to the next owner).
  [[nodiscard]] ReadResult read(RingRecord* out, std::size_t room) noexcept {
    if (damaged_) {
      return {0, ReadStatus::damaged};
    }
    // Partner: the release stores of `head` in RingWriter.
    const std::uint64_t head = ring_->header.head.load(std::memory_order_acquire);
    if (head - position_ > ring_words) {
      damaged_ = true;
      return {0, ReadStatus::damaged};
    }
    std::size_t count = 0;
    while (count < room) {
      switch (read_one(head, out[count])) {
        case Step::record:
          count += 1;
          break;
        case Step::last_record:
          return {count + 1, ReadStatus::ended};
        case Step::nothing:
          return {count, ReadStatus::drained};
        case Step::impossible:
          damaged_ = true;
          return {count, ReadStatus::damaged};
      }
    }
    return {count, position_ == head ? ReadStatus::drained : ReadStatus::more};
  }

  // Lets the program reuse what has been read.
  void release() noexcept {
    // Partner: the acquire loads of `tail` in RingWriter.
    ring_->header.tail.store(position_, std::memory_order_release);
  }

  // Before a ring goes to a new owner without a thread_end or jump: its thread is gone, or it is damaged.
  void restart_at_head() noexcept {
    position_ = ring_->header.head.load(std::memory_order_acquire);
    stamp_base_ = 0;
    last_stamp_ = 0;
    started_ = false;
    damaged_ = false;
  }

  // Words read so far; and words published but not read, at most a ring's length.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t backlog_words() const noexcept {
    const std::uint64_t words = ring_->header.head.load(std::memory_order_relaxed) - position_;
    return words < ring_words ? words : ring_words;
  }
  [[nodiscard]] bool is_damaged() const noexcept { return damaged_; }

 private:
  enum class Step : std::uint8_t { record, last_record, nothing, impossible };

  [[nodiscard]] std::uint64_t word(std::uint64_t at) const noexcept {
    return ring_->words[at & ring_mask].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t whole(std::uint64_t stamp) noexcept {
    last_stamp_ = stamp > last_stamp_ ? stamp : last_stamp_;
    return last_stamp_;
  }

  // Extensions met before a record; each may come once.
  struct Extensions {
    std::uint32_t seen = 0;
    std::uint64_t payload[8] = {};

    [[nodiscard]] bool add(Escape e, std::uint64_t value) noexcept {
      const auto index = static_cast<std::uint32_t>(e);
      if (index == 0 || index > static_cast<std::uint32_t>(Escape::address) || (seen >> index & 1) != 0) {
        return false;
      }
      seen |= 1U << index;
      payload[index] = value;
      return true;
    }
    [[nodiscard]] bool has(Escape e) const noexcept { return (seen >> static_cast<unsigned>(e) & 1) != 0; }
    [[nodiscard]] std::uint64_t of(Escape e) const noexcept { return payload[static_cast<unsigned>(e)]; }
  };

  // One record and the extensions before it. Every turn of the loop moves on by a word or two, up to `head`.
  [[nodiscard]] Step read_one(std::uint64_t head, RingRecord& out) noexcept {
    Extensions extensions;
    std::uint64_t at = position_;
    for (;;) {
      if (at == head) {
        position_ = extensions.seen == 0 ? at : position_;  // only padding was read
        return extensions.seen == 0 ? Step::nothing : Step::impossible;
      }
      const std::uint64_t word0 = word(at);
      const auto escape = static_cast<Escape>(word0 >> call_shift & 0xff);
      if ((word0 & escape_bit) == 0) {
        return read_event(head, at, word0, extensions, out);
      }
      if (escape == Escape::pad) {
        if (extensions.seen != 0) {
          return Step::impossible;
        }
        at += 1;
        continue;
      }
      if (head - at < 2 || (word0 & site_bit) != 0) {
        return Step::impossible;
      }
      const std::uint64_t payload = word(at + 1);
      at += 2;
      if (escape < Escape::thread_start) {
        if (!started_ || !extensions.add(escape, payload)) {
          return Step::impossible;
        }
        continue;
      }
      if (extensions.seen != 0) {
        return Step::impossible;
      }
      position_ = at;
      return read_control(escape, word0 & operand_mask, payload, out);
    }
  }

  [[nodiscard]] Step read_event(std::uint64_t head, std::uint64_t at, std::uint64_t word0,
                                const Extensions& x, RingRecord& out) noexcept {
    const std::uint64_t length = (word0 & site_bit) != 0 ? 3 : 2;
    if (!started_ || head - at < length) {
      return Step::impossible;
    }
    const std::uint64_t word1 = word(at + 1);
    const auto call = static_cast<Call>(word0 >> call_shift & 0x3f);
    const auto phase = static_cast<Phase>(word0 >> phase_shift & 3);
    if (!is_known(call) || is_realloc(call) != (phase != Phase::whole)) {
      return Step::impossible;
    }
    if (x.has(Escape::stamp)) {
      stamp_base_ = x.of(Escape::stamp) & ~low_half;
    }
    const std::uint64_t alignment_code = word0 >> alignment_shift & 0x3f;
    const std::uint64_t alignment = alignment_code == 0 ? 0 : std::uint64_t{1} << (alignment_code - 1);
    out = RingRecord{};
    out.call = call;
    out.phase = phase;
    out.stamp = whole(stamp_base_ | word1 >> 32);
    out.address = x.has(Escape::address) ? x.of(Escape::address) : word0 & operand_mask;
    out.size_bytes = x.has(Escape::size) ? x.of(Escape::size) : word1 & low_half;
    out.alignment = x.has(Escape::alignment) ? x.of(Escape::alignment) : alignment;
    out.site = length == 3 ? word(at + 2) : 0;
    position_ = at + length;
    return Step::record;
  }

  [[nodiscard]] Step read_control(Escape kind, std::uint64_t operand, std::uint64_t payload,
                                  RingRecord& out) noexcept {
    out = RingRecord{};
    out.value = operand;
    const bool starts = kind == Escape::thread_start || kind == Escape::carry_on;
    if (starts == started_) {
      return Step::impossible;  // a second start, or anything else before the first
    }
    switch (kind) {
      case Escape::thread_start:
      case Escape::carry_on:
        out.type = kind == Escape::thread_start ? RingRecord::Type::thread_start : RingRecord::Type::carry_on;
        started_ = true;
        last_stamp_ = payload;
        stamp_base_ = payload & ~low_half;
        out.stamp = payload;
        break;
      case Escape::thread_end:
      case Escape::jump:
        out.type = kind == Escape::thread_end ? RingRecord::Type::thread_end : RingRecord::Type::jump;
        started_ = false;
        out.stamp = whole(payload);
        break;
      case Escape::gap:
        out.type = RingRecord::Type::gap;
        out.value = payload;
        break;
      default:
        return Step::impossible;
    }
    const bool names_ring = kind == Escape::jump || kind == Escape::carry_on;
    if (names_ring && operand >= ring_count_) {
      return Step::impossible;
    }
    return started_ ? Step::record : Step::last_record;
  }

  static constexpr std::uint64_t low_half = 0xffffffff;

  Ring* ring_;
  std::uint64_t position_ = 0;
  std::uint64_t stamp_base_ = 0;  // upper half of the last whole stamp
  std::uint64_t last_stamp_ = 0;
  std::uint32_t ring_count_;
  bool started_ = false;  // between thread_start or carry_on and thread_end or jump
  bool damaged_ = false;
};

}  // namespace heaptape::ring
