#include "analyzers/histogram.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace heaptape::analyzers {
namespace {

using Limits = std::numeric_limits<std::uint64_t>;

TEST(LogHistogram, BucketsCoverAllValuesWithoutHoleOrOverlap) {
  EXPECT_EQ(LogHistogram::lowest(0), 0U);
  for (std::size_t bucket = 0; bucket + 1 < LogHistogram::bucket_count; ++bucket) {
    ASSERT_EQ(LogHistogram::highest(bucket) + 1, LogHistogram::lowest(bucket + 1)) << bucket;
    ASSERT_EQ(LogHistogram::bucket_of(LogHistogram::lowest(bucket)), bucket);
    ASSERT_EQ(LogHistogram::bucket_of(LogHistogram::highest(bucket)), bucket);
  }
  EXPECT_EQ(LogHistogram::bucket_of(Limits::max()), LogHistogram::bucket_count - 1);
}

TEST(LogHistogram, ABucketIsAtMostAThirtySecondOfItsValueWide) {
  for (std::size_t bucket = 64; bucket + 1 < LogHistogram::bucket_count; ++bucket) {
    ASSERT_LE(LogHistogram::highest(bucket) - LogHistogram::lowest(bucket),
              LogHistogram::lowest(bucket) / 32);
  }
}

TEST(LogHistogram, RowsArePowersOfTwo) {
  LogHistogram h;
  for (const std::uint64_t value : {0ULL, 1ULL, 2ULL, 3ULL, 4ULL, 1023ULL, 1024ULL, 2047ULL, 2048ULL}) {
    h.add(value);
  }
  const auto rows = h.rows();
  EXPECT_EQ(rows[0], 1U);
  EXPECT_EQ(rows[1], 1U);
  EXPECT_EQ(rows[2], 2U);
  EXPECT_EQ(rows[3], 1U);
  EXPECT_EQ(rows[10], 1U);
  EXPECT_EQ(rows[11], 2U);
  EXPECT_EQ(rows[12], 1U);
}

TEST(LogHistogram, DecadesCountEveryValueOnceAndLeaveOutEmptyRows) {
  LogHistogram h;
  for (const std::uint64_t value : {0ULL, 2ULL, 9ULL, 10ULL, 29ULL, 30ULL, 5000ULL}) {
    h.add(value);
  }
  const auto whole = h.decades(false);
  ASSERT_EQ(whole.size(), 3U);
  EXPECT_EQ(whole[0].below, 10U);
  EXPECT_EQ(whole[0].count, 3U);
  EXPECT_EQ(whole[1].below, 100U);
  EXPECT_EQ(whole[1].count, 3U);
  EXPECT_EQ(whole[2].below, 10000U);
  const auto halves = h.decades(true);
  ASSERT_EQ(halves.size(), 6U);
  const std::uint64_t ends[] = {1, 3, 10, 30, 100, 10000};
  const std::uint64_t counts[] = {1, 1, 1, 2, 1, 1};
  for (std::size_t at = 0; at < 6; ++at) {
    EXPECT_EQ(halves[at].below, ends[at]);
    EXPECT_EQ(halves[at].count, counts[at]);
  }
}

TEST(LogHistogram, DecadesReachTheLargestValue) {
  LogHistogram h;
  h.add(Limits::max());
  for (const bool halved : {false, true}) {
    ASSERT_EQ(h.decades(halved).size(), 1U);
    EXPECT_EQ(h.decades(halved)[0].below, Limits::max());
  }
}

TEST(LogHistogram, QuantilesOfSmallValuesAreExact) {
  LogHistogram h;
  h.add(7, 50);
  h.add(40, 50);
  EXPECT_EQ(h.quantile(0.5), 7U);
  EXPECT_EQ(h.quantile(0.51), 40U);
  EXPECT_EQ(h.sum(), 7U * 50 + 40U * 50);
}

TEST(LogHistogram, NoQuantileExceedsTheLargestValue) {
  LogHistogram h;
  EXPECT_EQ(h.quantile(0.5), 0U);
  h.add(LogHistogram::lowest(1000));
  EXPECT_EQ(h.quantile(1.0), h.largest());
}

}  // namespace
}  // namespace heaptape::analyzers
