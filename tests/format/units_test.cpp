#include "format/base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heaptape::format {
namespace {

using namespace std::chrono_literals;

TEST(Units, SizesTakeSuffixesOfPowersOf1024) {
  EXPECT_EQ(parse_size_bytes("4096").value(), 4096U);
  EXPECT_EQ(parse_size_bytes("64K").value(), 65536U);
  EXPECT_EQ(parse_size_bytes("32MiB").value(), 32U << 20);
  EXPECT_EQ(parse_size_bytes("1.5 gb").value(), 3ULL << 29);
}

TEST(Units, WhatIsNoSizeIsAUsageErrorThatShowsAnExample) {
  for (const char* bad : {"", "K", "-1", "12x", "1e30", "nan", "inf"}) {
    const auto r = parse_size_bytes(bad);
    ASSERT_FALSE(r) << bad;
    EXPECT_EQ(r.error().code(), ExitCode::usage);
  }
  EXPECT_THAT(parse_size_bytes("q").error().message(), testing::HasSubstr("64K"));
}

TEST(Units, DurationsTakeUnitsAndABareNumberIsSeconds) {
  EXPECT_EQ(parse_duration("90s").value(), 90s);
  EXPECT_EQ(parse_duration("5m").value(), 5min);
  EXPECT_EQ(parse_duration("250ms").value(), 250ms);
  EXPECT_EQ(parse_duration("2").value(), 2s);
  EXPECT_FALSE(parse_duration("5 parsecs"));
}

TEST(Units, NumbersAreWrittenForPeople) {
  EXPECT_EQ(format_size(17), "17 B");
  EXPECT_EQ(format_size(3ULL << 29), "1.50 GiB");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_duration(1240ms), "1.24 s");
}

}  // namespace
}  // namespace heaptape::format
