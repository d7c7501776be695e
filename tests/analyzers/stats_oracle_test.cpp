// Everything that `stats` counts, against a second implementation that is as plain as possible:
// maps by object, all values kept and sorted, no slots, no buckets, no use of released sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "analyzers/stats.h"
#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers {
namespace {

using format::Event;
using format::EventFlag;
using format::Kind;
using format::ObjectId;

struct Block {
  std::uint64_t size;
  std::uint64_t birth_call;
  std::int64_t birth_ns;
  std::uint32_t owner;
};

struct Oracle {
  std::map<ObjectId, Block> live;
  std::map<Kind, std::uint64_t> by_kind;
  std::map<std::uint64_t, std::uint64_t> by_size;
  std::map<std::uint64_t, std::uint64_t> by_alignment;
  std::map<std::uint32_t, std::uint64_t> by_thread;
  std::map<std::uint32_t, std::uint64_t> bytes_by_thread;
  std::map<std::uint32_t, std::uint64_t> foreign_releases;
  std::map<std::uint32_t, std::uint64_t> live_bytes_by_thread;
  std::map<std::uint64_t, std::set<std::uint64_t>> bytes_after_call;  // several where releases were implied
  std::vector<std::uint64_t> ages;
  std::vector<std::uint64_t> ages_ns;
  std::uint64_t calls = 0, total = 0, peak = 0, peak_call = 0, most = 0, failed = 0, unknown = 0,
                in_place = 0, zero = 0, foreign = 0, free_null = 0;

  [[nodiscard]] std::uint64_t live_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [object, block] : live) {
      sum += block.size;
    }
    return sum;
  }

  void one(const Event& e) {
    const auto thread = static_cast<std::uint32_t>(e.thread);
    const bool call = !e.has(EventFlag::implied);
    if (call) {
      ++calls;
      ++by_kind[e.kind];
      ++by_thread[thread];
      failed += e.has(EventFlag::failed);
      unknown += e.has(EventFlag::unknown_release);
      in_place += e.has(EventFlag::in_place);
      free_null += is_release(e.kind) && e.has(EventFlag::null_argument);
    }
    Block block{e.size_bytes, calls, e.time_ns, thread};
    if (e.released != ObjectId::none) {
      const auto old = live.extract(e.released);
      ASSERT_FALSE(old.empty());
      block.birth_call = old.mapped().birth_call;
      block.birth_ns = old.mapped().birth_ns;
      if (call && e.object == ObjectId::none) {
        ages.push_back(calls - block.birth_call);
        ages_ns.push_back(static_cast<std::uint64_t>(e.time_ns - block.birth_ns));
        if (old.mapped().owner != thread) {
          ++foreign;
          ++foreign_releases[thread];
        }
      }
    }
    if (e.object != ObjectId::none) {
      live[e.object] = block;
      total += e.size_bytes;
      zero += e.size_bytes == 0;
      ++by_size[e.size_bytes];
      ++by_alignment[e.alignment];
      bytes_by_thread[thread] += e.size_bytes;
    }
    most = std::max<std::uint64_t>(most, live.size());
    const std::uint64_t now = live_bytes();
    if (now > peak) {
      peak = now;
      peak_call = calls;
    }
    bytes_after_call[calls].insert(now);
  }
};

class StatsOracle : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    auto events = testing::random_events(GetParam(), 6000);
    for (const Event& e : events) {
      oracle.one(e);
    }
    for (const auto& [object, block] : oracle.live) {
      oracle.live_bytes_by_thread[block.owner] += block.size;
    }
    format::VectorCursor cursor(std::move(events));
    ASSERT_TRUE(run(cursor, {stats.get()}));
  }
  Oracle oracle;
  std::unique_ptr<StatsAnalysis> stats = std::make_unique<StatsAnalysis>();
};

TEST_P(StatsOracle, TotalsAreTheSame) {
  const Totals& t = stats->result().totals;
  EXPECT_EQ(t.events, oracle.calls);
  for (std::size_t k = 0; k < 64; ++k) {
    EXPECT_EQ(t.calls(Kind{static_cast<std::uint8_t>(k)}), oracle.by_kind[Kind{static_cast<std::uint8_t>(k)}])
        << k;
  }
  EXPECT_EQ(t.total_alloc_bytes, oracle.total);
  EXPECT_EQ(t.peak_live_bytes, oracle.peak);
  EXPECT_EQ(t.peak_event, oracle.peak_call);
  EXPECT_EQ(t.peak_live_objects, oracle.most);
  EXPECT_EQ(t.end_live_bytes, oracle.live_bytes());
  EXPECT_EQ(t.end_live_objects, oracle.live.size());
  EXPECT_EQ(t.failed_calls, oracle.failed);
  EXPECT_EQ(t.unknown_releases, oracle.unknown);
  EXPECT_EQ(t.realloc_in_place, oracle.in_place);
  EXPECT_EQ(t.zero_size_allocs, oracle.zero);
  EXPECT_EQ(t.free_null, oracle.free_null);
  EXPECT_EQ(t.largest_request, oracle.by_size.rbegin()->first);
}

TEST_P(StatsOracle, SizeRowsHoldEverySizeOnce) {
  const SizeProfile& profile = stats->result().sizes;
  std::uint64_t count = 0;
  for (const SizeRow& row : profile.classes) {
    std::uint64_t expected = 0;
    std::uint64_t bytes = 0;
    for (auto at = oracle.by_size.lower_bound(row.low); at != oracle.by_size.end() && at->first <= row.high;
         ++at) {
      expected += at->second;
      bytes += at->first * at->second;
    }
    EXPECT_EQ(row.count, expected) << row.low << " to " << row.high;
    EXPECT_EQ(row.bytes, bytes) << row.low << " to " << row.high;
    count += row.count;
  }
  std::uint64_t all = 0;
  std::map<std::uint64_t, std::uint64_t> powers;
  for (const auto& [size, n] : oracle.by_size) {
    all += n;
    powers[std::bit_floor(size)] += n;
  }
  EXPECT_EQ(count, all);
  ASSERT_EQ(profile.powers.size(), powers.size());
  for (const SizeRow& row : profile.powers) {
    EXPECT_EQ(row.count, powers[row.low]) << row.low;
  }
}

TEST_P(StatsOracle, AlignmentsAreTheSame) {
  const SizeProfile& profile = stats->result().sizes;
  EXPECT_EQ(profile.odd_alignments, oracle.by_alignment[24]);
  oracle.by_alignment.erase(24);
  ASSERT_EQ(profile.alignments.size(), oracle.by_alignment.size());
  for (const AlignmentRow& row : profile.alignments) {
    EXPECT_EQ(row.count, oracle.by_alignment[row.alignment]) << row.alignment;
  }
}

void expect_quantiles_near(const LogHistogram& histogram, std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  ASSERT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.largest(), values.back());
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.99}) {
    const auto at = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1;
    const auto exact = static_cast<double>(values[at]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile(q)), exact, exact / 60 + 0.5) << q;
  }
}

TEST_P(StatsOracle, LifetimesAreTheSame) {
  const Lifetimes& l = stats->result().lifetimes;
  EXPECT_EQ(l.released, oracle.ages.size());
  EXPECT_EQ(l.released_by_other_thread, oracle.foreign);
  expect_quantiles_near(l.calls, oracle.ages);
  expect_quantiles_near(l.nanoseconds, oracle.ages_ns);
}

TEST_P(StatsOracle, ThreadsAreTheSame) {
  const auto& rows = stats->result().threads;
  ASSERT_EQ(rows.size(), oracle.by_thread.size());
  for (const ThreadRow& row : rows) {
    const auto thread = static_cast<std::uint32_t>(row.thread);
    EXPECT_EQ(row.calls, oracle.by_thread[thread]);
    EXPECT_EQ(row.alloc_bytes, oracle.bytes_by_thread[thread]);
    EXPECT_EQ(row.releases_of_others, oracle.foreign_releases[thread]);
    EXPECT_EQ(row.live_bytes, oracle.live_bytes_by_thread[thread]);
  }
}

TEST_P(StatsOracle, TheCurveGoesThroughTheTrueValuesAndLosesNoPeak) {
  const LiveCurve& curve = stats->result().curve;
  for (const auto* points : {&curve.by_call, &curve.by_time}) {
    ASSERT_FALSE(points->empty());
    EXPECT_LE(points->size(), 2000U);
    std::uint64_t highest = 0;
    std::uint64_t previous = 0;
    for (const CurvePoint& p : *points) {
      EXPECT_TRUE(oracle.bytes_after_call[p.call].contains(p.live_bytes)) << p.call;
      EXPECT_GE(p.highest_bytes, p.live_bytes);
      EXPECT_LE(p.lowest_bytes, p.live_bytes);
      EXPECT_GE(p.call, previous);
      previous = p.call;
      highest = std::max(highest, p.highest_bytes);
    }
    EXPECT_EQ(highest, oracle.peak);
    EXPECT_EQ(points->back().live_bytes, oracle.live_bytes());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StatsOracle, ::testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace heaptape::analyzers
