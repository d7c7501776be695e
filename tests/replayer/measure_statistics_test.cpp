#include "replayer/measure/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace heaptape::replayer {
namespace {

TEST(Statistics, MedianIsTheMiddleOrTheMeanOfTheTwoMiddles) {
  EXPECT_EQ(median_of(std::vector<double>{}), 0.0);
  EXPECT_EQ(median_of(std::vector<double>{3, 1, 2}), 2.0);
  EXPECT_EQ(median_of(std::vector<double>{4, 1, 2, 3}), 2.5);
}

TEST(Statistics, OneRunGivesAPoint) {
  EXPECT_EQ(estimate_median(std::vector<double>{7}), (Estimate{7, 7, 7}));
}

// The median of 5 resampled values is the smallest with probability 0.058: more than 2.5 %.
TEST(Statistics, TheIntervalOfFiveRunsIsFromTheSmallestToTheLargest) {
  const Estimate e = estimate_median(std::vector<double>{10, 50, 20, 40, 30});
  EXPECT_EQ(e, (Estimate{30, 10, 50}));
}

// Of 11 values, the 3rd and the 9th: at least 6 of 11 draws come from the lowest 2 with probability
// 0.8 %, from the lowest 3 with 5.5 %.
TEST(Statistics, TheIntervalNarrowsWithMoreRuns) {
  std::vector<double> values;
  for (int i = 1; i <= 11; ++i) {
    values.push_back(i);
  }
  EXPECT_EQ(estimate_median(values), (Estimate{6, 3, 9}));
}

TEST(Statistics, TheSameRunsAlwaysGiveTheSameInterval) {
  const std::vector<double> values{1.5, 2.25, 9, 3, 4, 8, 1};
  EXPECT_EQ(estimate_median(values), estimate_median(values));
}

TEST(Statistics, ARatioIsPairedSoThatWhatSlowsBothCancels) {
  // Both grow tenfold over the rounds; unpaired, the interval would reach from 0.2 to 20.
  const std::vector<double> slow{20, 40, 80, 160, 200};
  const std::vector<double> fast{10, 20, 40, 80, 100};
  const Estimate ratio = estimate_ratio(slow, fast);
  EXPECT_EQ(ratio, (Estimate{2, 2, 2}));
}

TEST(Statistics, ARatioOfNoiseIncludesOne) {
  const std::vector<double> a{10, 11, 9, 10, 12};
  const std::vector<double> b{11, 9, 10, 10, 10};
  const Estimate ratio = estimate_ratio(a, b);
  EXPECT_LT(ratio.low, 1.0);
  EXPECT_GT(ratio.high, 1.0);
}

}  // namespace
}  // namespace heaptape::replayer
