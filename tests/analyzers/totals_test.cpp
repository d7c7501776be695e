#include "analyzers/totals.h"

#include <gtest/gtest.h>

#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers {
namespace {

using format::Kind;
using format::ObjectId;
using testing::Scenario;

Totals totals_of(Scenario& s) {
  format::VectorCursor cursor(s.events());
  TotalsAnalysis analysis;
  EXPECT_TRUE(run(cursor, {&analysis}));
  return analysis.result();
}

TEST(Totals, OfNoEventsAreAllZero) {
  Scenario s;
  const Totals t = totals_of(s);
  EXPECT_EQ(t.events, 0U);
  EXPECT_EQ(t.peak_event, 0U);
  EXPECT_EQ(t.end_live_bytes, 0U);
}

// The calls that are legal but odd, with sums made by hand.
TEST(Totals, CountOddButLegalCallsAsDocumented) {
  Scenario s;
  const ObjectId empty = s.acquire(0);      // 1  live 0
  const ObjectId a = s.acquire(60);         // 2  live 60
  const ObjectId b = s.resize(a, 180);      // 3  live 180: the peak
  const ObjectId c = s.resize(b, 7, true);  // 4  live 7
  s.release(c);                             // 5  live 0
  s.release(empty);                         // 6
  s.release_null();                         // 7
  s.resize(ObjectId::none, 90);             // 8  live 90
  const ObjectId d = s.acquire(10);         // 9  live 100
  s.resize_to_nothing(d);                   // 10 live 90
  const Totals t = totals_of(s);
  EXPECT_EQ(t.events, 10U);
  EXPECT_EQ(t.calls(Kind::malloc), 3U);
  EXPECT_EQ(t.calls(Kind::realloc), 4U);
  EXPECT_EQ(t.calls(Kind::free), 3U);
  EXPECT_EQ(t.total_alloc_bytes, 0U + 60 + 180 + 7 + 90 + 10);
  EXPECT_EQ(t.largest_request, 180U);
  EXPECT_EQ(t.peak_live_bytes, 180U);
  EXPECT_EQ(t.peak_event, 3U);
  EXPECT_EQ(t.objects_at_peak, 2U);
  EXPECT_EQ(t.peak_live_objects, 2U);
  EXPECT_EQ(t.end_live_bytes, 90U);
  EXPECT_EQ(t.end_live_objects, 1U);
  EXPECT_EQ(t.free_null, 1U);
  EXPECT_EQ(t.realloc_null, 1U);
  EXPECT_EQ(t.realloc_zero, 1U);
  EXPECT_EQ(t.realloc_in_place, 1U);
  EXPECT_EQ(t.zero_size_allocs, 1U);
}

TEST(Totals, TheReleasedHalfOfAReallocGoesBeforeTheAcquiredHalfComes) {
  Scenario s;
  const ObjectId a = s.acquire(700);
  const ObjectId b = s.acquire(500);  // the peak: 1200
  s.release(a);
  s.resize(b, 900);  // 500 goes, 900 comes; never 1400
  const Totals t = totals_of(s);
  EXPECT_EQ(t.peak_live_bytes, 1200U);
  EXPECT_EQ(t.peak_event, 2U);
  EXPECT_EQ(t.end_live_bytes, 900U);
}

TEST(Totals, APeakReachedAgainIsTheFirst) {
  Scenario s;
  const ObjectId a = s.after(5).acquire(100);
  s.release(a);
  s.after(5).acquire(100);
  const Totals t = totals_of(s);
  EXPECT_EQ(t.peak_event, 1U);
  EXPECT_EQ(t.peak_time_ns, 5);
}

TEST(Totals, MostBlocksAndMostBytesMayFallOnDifferentMoments) {
  Scenario s;
  const ObjectId big = s.acquire(1000);
  s.release(big);
  s.acquire(1);
  s.acquire(1);
  const Totals t = totals_of(s);
  EXPECT_EQ(t.objects_at_peak, 1U);
  EXPECT_EQ(t.peak_live_objects, 2U);
}

TEST(Totals, AFailedCallAcquiresAndReleasesNothing) {
  Scenario s;
  const ObjectId a = s.acquire(10);
  s.fail(std::uint64_t{1} << 40);
  s.resize_in_vain(a, std::uint64_t{1} << 41);
  const Totals t = totals_of(s);
  EXPECT_EQ(t.events, 3U);
  EXPECT_EQ(t.failed_calls, 2U);
  EXPECT_EQ(t.largest_failed_request, std::uint64_t{1} << 41);
  EXPECT_EQ(t.largest_request, 10U);
  EXPECT_EQ(t.total_alloc_bytes, 10U);
  EXPECT_EQ(t.end_live_bytes, 10U);
}

TEST(Totals, AnImpliedReleaseIsNoCallButItsBlockIsGone) {
  Scenario s;
  const ObjectId a = s.acquire(10);
  const ObjectId b = s.acquire(20);
  s.imply_release(a);
  s.imply_release(b, true);
  const Totals t = totals_of(s);
  EXPECT_EQ(t.events, 2U);
  EXPECT_EQ(t.calls(Kind::free), 0U);
  EXPECT_EQ(t.implied_releases, 1U);
  EXPECT_EQ(t.implied_by_damage, 1U);
  EXPECT_EQ(t.end_live_objects, 0U);
}

TEST(Totals, AReleaseOfAnUnknownBlockIsACallThatReleasesNothing) {
  Scenario s;
  s.acquire(10);
  s.release_unknown();
  const Totals t = totals_of(s);
  EXPECT_EQ(t.calls(Kind::free), 1U);
  EXPECT_EQ(t.unknown_releases, 1U);
  EXPECT_EQ(t.end_live_bytes, 10U);
}

TEST(Totals, AnUnfinishedReallocLeavesItsBlockLive) {
  Scenario s;
  const ObjectId a = s.acquire(10);
  s.resize_unfinished(a, 99);
  const Totals t = totals_of(s);
  EXPECT_EQ(t.unfinished_reallocs, 1U);
  EXPECT_EQ(t.failed_calls, 0U);
  EXPECT_EQ(t.total_alloc_bytes, 10U);
  EXPECT_EQ(t.end_live_bytes, 10U);
}

}  // namespace
}  // namespace heaptape::analyzers
