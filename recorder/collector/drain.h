// Empties the rings of one recorded process into its tape.
//
// Guarantees: a pass reads everything that was published before it began, each thread's events in
// that thread's order, also across chained rings; and it ends, whatever the program does meanwhile.
// Nothing the program writes is believed: an impossible word stops that ring, counts as damage and
// is marked on the tape as a gap of unknown length; what follows in that ring is thrown away, so
// that its thread never waits for us. Memory: one batch of records and a few words per ring.
// One thread. Costs some 5 ns per event besides the writer's encoding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/base/error.h"
#include "format/event.h"
#include "format/writer.h"
#include "recorder/collector/segment.h"
#include "recorder/collector/threads.h"
#include "recorder/ring/reader.h"

namespace heaptape::collector {

class Drain {
 public:
  Drain(Segment& segment, Threads& threads, format::TapeWriter& writer)
      : segment_(&segment), threads_(&threads), writer_(&writer), records_(batch_records) {
    events_.reserve(batch_records);
  }

  struct Pass {
    std::uint64_t events = 0;
    std::uint64_t fullest_words = 0;  // the largest backlog met in a ring
    std::uint32_t rings = 0;          // in which there was any: they have room now
  };
  // `now_ns` as for Threads. The first error of the writer ends the pass and is returned.
  [[nodiscard]] format::Result<Pass> pass(std::int64_t now_ns);

  // Rings whose thread `lives(tid)` denies: among all, or among those of threads that said that they
  // are ending. After one more pass, `take_back` offers them again.
  enum class Among : std::uint8_t { all, ending };
  template <typename Lives>
  [[nodiscard]] std::vector<std::uint32_t> orphans(Among among, Lives lives) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      const bool asked = among == Among::all || segment_->state(i) == ring::RingState::ending;
      if (asked && slots_[i].bond == Bond::bound && !lives(threads_->tid(slots_[i].thread))) {
        found.push_back(i);
      }
    }
    return found;
  }
  void take_back(std::span<const std::uint32_t> rings, std::int64_t now_ns);

  [[nodiscard]] std::uint64_t damaged_rings() const noexcept { return damaged_rings_; }

 private:
  static constexpr std::size_t batch_records = 1024;
  static constexpr std::uint32_t no_ring = ~std::uint32_t{0};
  static constexpr unsigned most_waiting_passes = 100;

  enum class Bond : std::uint8_t {
    none,     // nothing read from the present claim yet
    waiting,  // begins with carry_on from a ring whose jump has not been read yet
    bound,    // belongs to `thread`
    ended,    // its last record has been read; to be offered again
    damaged,  // thrown away until its thread leaves it
  };
  struct Slot {
    explicit Slot(ring::RingReader r) : reader(r) {}
    void reset() noexcept;

    ring::RingReader reader;
    std::uint64_t begin_stamp = 0;      // of the claim: a thread's rings are read in this order
    std::uint64_t last_stamp = 0;       // of the last event
    std::uint64_t lost_events = 0;      // of a gap whose next event has not come yet
    std::uint32_t neighbour = no_ring;  // expected, waiting: the ring that was left
    unsigned waiting_passes = 0;
    format::ThreadIndex thread{};  // bound, damaged, expected
    bool gap_due = false;
    bool expected = false;  // a jump to this ring has been read
    Bond bond = Bond::none;
  };
  struct Newcomer {
    std::uint64_t stamp = 0;
    std::uint32_t ring = 0;
    std::uint32_t tid = 0;
  };

  [[nodiscard]] format::Result<void> meet(std::uint32_t index);
  void resolve_waiting(std::uint32_t index);
  void bind_newcomers();
  [[nodiscard]] format::Result<void> drain_chain(std::uint32_t first);
  [[nodiscard]] format::Result<std::uint32_t> drain_ring(std::uint32_t index);
  [[nodiscard]] format::Result<void> take(Slot& slot, std::span<const ring::RingRecord> records);
  [[nodiscard]] format::Result<void> flush(const Slot& slot);
  [[nodiscard]] format::Result<void> write_gap(Slot& slot, std::uint64_t stamp);
  [[nodiscard]] format::Result<std::uint32_t> follow(std::uint32_t from, std::uint64_t to);
  [[nodiscard]] format::Result<void> found_damage(std::uint32_t index);
  void offer_ended();

  Segment* segment_;
  Threads* threads_;
  format::TapeWriter* writer_;
  std::vector<Slot> slots_;  // one per ring that has ever been offered
  std::vector<ring::RingRecord> records_;
  std::vector<format::RecordedEvent> events_;  // of one batch; storage kept
  std::vector<Newcomer> newcomers_;
  std::vector<std::uint32_t> order_;  // of one pass; storage kept
  Pass pass_;
  std::int64_t now_ns_ = 0;
  std::uint64_t last_stamp_ = 0;  // of the last record read
  std::uint64_t damaged_rings_ = 0;
};

}  // namespace heaptape::collector
