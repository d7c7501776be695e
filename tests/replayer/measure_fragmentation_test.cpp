// The four measures against values computed by hand.
#include "replayer/measure/fragmentation.h"

#include <gtest/gtest.h>

#include <vector>

namespace heaptape::replayer {
namespace {

CurvePoint point(std::uint64_t op, std::uint64_t requested, std::uint64_t resident, bool exact = true) {
  CurvePoint p;
  p.op_index = op;
  p.event_index = op + 1000;
  p.time_ns = static_cast<std::int64_t>(op) * 7;
  p.requested_bytes = requested;
  p.resident_bytes = resident;
  p.exact = exact;
  return p;
}

TEST(Fragmentation, TheFourMeasuresAndTheirMoments) {
  // F:                                        2           1.5          3
  const std::vector<CurvePoint> curve{point(0, 100, 200), point(10, 400, 600), point(40, 250, 750)};
  const Fragmentation f = measure_fragmentation(curve, &CurvePoint::resident_bytes);
  // Weights 5, 20, 15 of 40.
  EXPECT_DOUBLE_EQ(f.mean_over_run, (5 * 2 + 20 * 1.5 + 15 * 3) / 40.0 - 1);
  EXPECT_DOUBLE_EQ(f.integral_ratio, (5 * 200 + 20 * 600 + 15 * 750) / (5 * 100 + 20 * 400 + 15 * 250.0) - 1);
  EXPECT_EQ(f.at_requested_peak, (MeasureAt{0.5, 1010, 70}));
  EXPECT_EQ(f.at_own_peak, (MeasureAt{2.0, 1040, 280}));
  EXPECT_DOUBLE_EQ(f.own_peak_over_requested_peak, 750.0 / 400 - 1);
}

TEST(Fragmentation, PeaksAreTakenWhereTheyWereReadExactly) {
  const std::vector<CurvePoint> curve{point(0, 100, 200), point(10, 100, 900, false), point(20, 100, 300)};
  const Fragmentation f = measure_fragmentation(curve, &CurvePoint::resident_bytes);
  EXPECT_DOUBLE_EQ(f.at_own_peak.value, 2.0);
  EXPECT_EQ(f.at_own_peak.event_index, 1020U);
  // The mean takes all readings: weights 5, 10, 5.
  EXPECT_DOUBLE_EQ(f.mean_over_run, (5 * 2 + 10 * 9 + 5 * 3) / 20.0 - 1);
}

TEST(Fragmentation, WithoutExactReadingsTheCheapOnesServe) {
  const std::vector<CurvePoint> curve{point(0, 100, 200, false), point(10, 100, 900, false)};
  EXPECT_DOUBLE_EQ(measure_fragmentation(curve, &CurvePoint::resident_bytes).at_own_peak.value, 8.0);
}

TEST(Fragmentation, MomentsWithoutLiveBlocksHaveNone) {
  const std::vector<CurvePoint> curve{point(0, 100, 200), point(10, 0, 500), point(20, 100, 200)};
  const Fragmentation f = measure_fragmentation(curve, &CurvePoint::resident_bytes);
  EXPECT_DOUBLE_EQ(f.mean_over_run, 1.0);
  // The largest resident size stands where nothing is live: no ratio there, but measure 4 tells.
  EXPECT_DOUBLE_EQ(f.at_own_peak.value, 0.0);
  EXPECT_DOUBLE_EQ(f.own_peak_over_requested_peak, 4.0);
}

TEST(Fragmentation, ACurveOfOnePointIsThatPointAndAnEmptyOneNothing) {
  EXPECT_DOUBLE_EQ(
      measure_fragmentation(std::vector{point(5, 100, 150)}, &CurvePoint::resident_bytes).mean_over_run, 0.5);
  EXPECT_EQ(measure_fragmentation({}, &CurvePoint::resident_bytes), Fragmentation{});
  EXPECT_EQ(measure_fragmentation(std::vector{point(5, 0, 150)}, &CurvePoint::resident_bytes),
            Fragmentation{});
}

TEST(Fragmentation, WorksOnLivePagesToo) {
  CurvePoint p = point(1, 1000, 9000);
  p.live_page_bytes = 4096;
  EXPECT_DOUBLE_EQ(
      measure_fragmentation(std::vector{p}, &CurvePoint::live_page_bytes).at_requested_peak.value, 3.096);
}

}  // namespace
}  // namespace heaptape::replayer
