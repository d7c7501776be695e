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
