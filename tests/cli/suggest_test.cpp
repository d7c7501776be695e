#include "cli/suggest.h"

#include <gtest/gtest.h>

namespace heaptape::cli {
namespace {

const std::vector<std::string> verbs = {"record", "replay", "report", "info",
                                        "check",  "print",  "pack",   "stats"};

TEST(Suggest, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("stats", "stats"), 0U);
  EXPECT_EQ(edit_distance("stast", "stats"), 1U);
  EXPECT_EQ(edit_distance("sats", "stats"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Suggest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest("recrod", verbs), "record");
  EXPECT_EQ(nearest("stat", verbs), "stats");
  EXPECT_EQ(nearest("repaly", verbs), "replay");
  EXPECT_EQ(nearest("ifno", verbs), "info");
  EXPECT_EQ(nearest("che", verbs), "check");
}

TEST(Suggest, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("frobnicate", verbs), "");
  EXPECT_EQ(nearest("x", verbs), "");
  EXPECT_EQ(nearest("", verbs), "");
}

}  // namespace
}  // namespace heaptape::cli
