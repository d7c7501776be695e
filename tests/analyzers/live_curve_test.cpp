#include "analyzers/live_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers {
namespace {

using testing::Scenario;

TEST(BoundedCurve, KeepsEveryPointWhileTheyAreFew) {
  BoundedCurve curve(100);
  for (std::uint64_t at = 0; at < 100; ++at) {
    curve.add(at, at, 0, at * at, 1);
  }
  ASSERT_EQ(curve.points().size(), 100U);
  EXPECT_EQ(curve.points()[9].live_bytes, 81U);
  EXPECT_EQ(curve.width(), 1U);
}

TEST(BoundedCurve, NeverHoldsMoreThanItsBoundAndKeepsASinglePeak) {
  BoundedCurve curve(64);
  for (std::uint64_t at = 0; at < 1'000'000; ++at) {
    curve.add(at, at, 0, at == 777'777 ? 5000 : 10, 1);
    ASSERT_LE(curve.points().size(), 64U);
  }
  const auto& points = curve.points();
  EXPECT_GE(points.size(), 30U);
  EXPECT_EQ(std::count_if(points.begin(), points.end(),
                          [](const CurvePoint& p) { return p.highest_bytes == 5000; }),
            1);
  EXPECT_EQ(points.back().call, 999'999U);
}

TEST(BoundedCurve, KeepsABurstAndALongSilenceApart) {
  BoundedCurve curve(64);
  for (std::uint64_t at = 0; at < 32; ++at) {
    curve.add(at, at, 0, at, 1);
  }
  for (std::uint64_t at = 0; at < 31; ++at) {
    curve.add((std::uint64_t{1} << 62) + at, at, 0, at, 1);
  }
  EXPECT_EQ(curve.points().size(), 63U);  // an empty interval costs nothing
}

TEST(BoundedCurve, EndsEvenWithPositionsAtBothEndsOfTheAxis) {
  BoundedCurve curve(4);
  for (std::uint64_t at = 0; at < 64; ++at) {
    curve.add(std::uint64_t{1} << at, at, 0, at, 1);
    ASSERT_LE(curve.points().size(), 4U);
  }
  EXPECT_EQ(curve.points().back().live_bytes, 63U);
}

TEST(LiveCurve, KeepsTheDipBetweenTwoLevels) {
  Scenario s;
  const auto a = s.after(10).acquire(100);
  s.after(10).release(a);
  s.after(10).acquire(100);
  format::VectorCursor cursor(s.events());
  LiveCurveAnalysis analysis;
  ASSERT_TRUE(run(cursor, {&analysis}));
  const auto& points = analysis.result().by_time;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].live_bytes, 100U);
  EXPECT_EQ(points[1].live_bytes, 0U);
  EXPECT_EQ(points[1].time_ns, 20);
  EXPECT_EQ(points[2].live_objects, 1U);
}

TEST(LiveCurve, TimeThatStepsBackDoesNotTurnTheAxisBack) {
  Scenario s;
  s.after(1000).acquire(1);
  s.after(-500).acquire(1);
  s.after(-5000).acquire(1);
  format::VectorCursor cursor(s.events());
  LiveCurveAnalysis analysis;
  ASSERT_TRUE(run(cursor, {&analysis}));
  const auto& points = analysis.result().by_time;
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].time_ns, 1000);
  EXPECT_EQ(points[0].live_bytes, 3U);
}

}  // namespace
}  // namespace heaptape::analyzers
