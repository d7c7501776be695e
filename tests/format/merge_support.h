// Short ways to write streams for the merge, and the invariants that every merged order must keep.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/merge.h"

namespace heaptape::format::merge_test {

inline RecordedEvent whole(Kind kind, std::uint64_t stamp, std::uint64_t address, std::uint64_t size = 0) {
  RecordedEvent e;
  e.kind = kind;
  e.stamp = stamp;
  e.address = address;
  e.size_bytes = size;
  return e;
}
inline RecordedEvent take(std::uint64_t stamp, std::uint64_t address, std::uint64_t size = 16) {
  return whole(Kind::malloc, stamp, address, size);
}
inline RecordedEvent give(std::uint64_t stamp, std::uint64_t address) {
  return whole(Kind::free, stamp, address);
}
inline RecordedEvent resize(Phase phase, std::uint64_t stamp, std::uint64_t address,
                            std::uint64_t size = 32) {
  RecordedEvent e = whole(Kind::realloc, stamp, address, size);
  e.phase = phase;
  return e;
}

// A clock of one tick per nanosecond: an acquire may be stamped up to 2^18 ticks too early.
inline TapeHeader header() {
  TapeHeader h;
  h.clock = ClockSource::tsc;
  h.ticks_per_second = 1e9;
  return h;
}

// Everything at once: streams by thread, then the end.
inline std::vector<Event> merged(Merger& merger, std::vector<std::vector<RecordedEvent>> streams,
                                 bool complete = true) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    merger.add(ThreadIndex{static_cast<std::uint32_t>(i)}, std::move(streams[i]));
  }
  merger.finish(complete);
  std::vector<Event> out;
  merger.take(out);
  return out;
}

// Checks, event by event, what every consumer relies on; what it says names the first violation.
class Invariants {
 public:
  void check(const Event& e) {
    ASSERT_EQ(e.index, next_index_++);
    ASSERT_GE(e.time_ns, time_ns_) << "time runs backwards at event " << e.index;
    time_ns_ = e.time_ns;
    ASSERT_TRUE(is_known(e.kind)) << "event " << e.index;
    if (e.released != ObjectId::none) {
      const auto it = live_.find(e.released_slot);
      ASSERT_TRUE(it != live_.end()) << "event " << e.index << " releases from an empty slot";
      ASSERT_EQ(it->second.object, e.released) << "event " << e.index;
      ASSERT_EQ(it->second.size_bytes, e.released_size_bytes) << "event " << e.index;
      ASSERT_TRUE(!e.has(EventFlag::failed) && !e.has(EventFlag::unfinished)) << "event " << e.index;
      live_.erase(it);
      if (e.object != ObjectId::none) {
        ASSERT_EQ(e.slot, e.released_slot) << "a realloc keeps its slot, event " << e.index;
      }
    } else {
      ASSERT_EQ(e.released_slot, SlotIndex::none) << "event " << e.index;
    }
    if (e.object != ObjectId::none) {
      ASSERT_EQ(static_cast<std::uint64_t>(e.object), ++last_object_) << "event " << e.index;
      ASSERT_TRUE(live_.try_emplace(e.slot, Live{e.object, e.size_bytes}).second)
          << "event " << e.index << " takes a slot that is held";
    } else {
      ASSERT_EQ(e.slot, SlotIndex::none) << "event " << e.index;
    }
    peak_ = std::max(peak_, live_.size());
    count(e);
  }
  void check(const std::vector<Event>& events) {
    for (const Event& e : events) {
      check(e);
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
  // The report says what the flags say, and the slots are as many as were held at once.
  void check_end(const Merger& merger) const {
    const MergeReport& r = merger.report();
    EXPECT_EQ(r.events, counted_.events);
    EXPECT_EQ(r.contradictions, counted_.contradictions);
    EXPECT_EQ(r.repairs, counted_.repairs);
    EXPECT_EQ(r.unknown_releases, counted_.unknown_releases);
    EXPECT_EQ(r.open_reallocs, counted_.open_reallocs);
    EXPECT_EQ(r.implied_by_damage, counted_.implied_by_damage);
    EXPECT_EQ(merger.slots(), peak_);
    EXPECT_EQ(merger.load().buffered_events, 0U);
  }
  [[nodiscard]] std::size_t live() const { return live_.size(); }

 private:
  struct Live {
    ObjectId object;
    std::uint64_t size_bytes;
  };
  void count(const Event& e) {
    const bool implied = e.has(EventFlag::implied);
    const bool unknown = e.has(EventFlag::unknown_release);
    const bool cut = e.has(EventFlag::cut);
    counted_.events += implied ? 0 : 1;
    counted_.contradictions += implied && !cut ? 1 : 0;
    counted_.unknown_releases += unknown && !cut ? 1 : 0;
    counted_.implied_by_damage += cut ? 1 : 0;
    counted_.repairs += e.has(EventFlag::repaired) ? 1 : 0;
    counted_.open_reallocs += e.has(EventFlag::unfinished) ? 1 : 0;
  }

  std::uint64_t next_index_ = 0;
  std::int64_t time_ns_ = 0;
  std::uint64_t last_object_ = 0;
  std::unordered_map<SlotIndex, Live> live_;
  std::size_t peak_ = 0;
  MergeReport counted_;
};

}  // namespace heaptape::format::merge_test
