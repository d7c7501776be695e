// Tapes of earlier days read as they did. tests/golden/README.md says what they are.
#include <gtest/gtest.h>

#include "tests/format/tape_support.h"
#include "tests/format/tape_text.h"

namespace heaptape::format {
namespace {

std::vector<std::filesystem::path> golden_tapes() {
  std::vector<std::filesystem::path> tapes;
  for (const auto& entry : std::filesystem::directory_iterator(HEAPTAPE_GOLDEN_FOLDER)) {
    if (entry.path().extension() == ".tape") {
      tapes.push_back(entry.path());
    }
  }
  std::sort(tapes.begin(), tapes.end());
  return tapes;
}

TEST(Golden, TapesAreThere) { EXPECT_EQ(golden_tapes().size(), 7U); }

TEST(Golden, TapesReadAsWhenTheyWereMade) {
  for (const auto& tape : golden_tapes()) {
    const auto reader = TapeReader::open(tape);
    ASSERT_TRUE(reader) << reader.error().message();
    const Bytes expected = read_file(std::filesystem::path(tape).replace_extension(".txt"));
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(tape_text(*reader), expected) << tape;
  }
}

TEST(Golden, TapesThatAreWholeReadTheSameByTheirIndex) {
  for (const auto& tape : golden_tapes()) {
    const auto whole = TapeReader::open(tape);
    ASSERT_TRUE(whole);
    if (!whole->info().damage.any()) {
      EXPECT_EQ(tape_text(TapeReader::open(tape, Verify::index).value()), tape_text(*whole)) << tape;
    }
  }
}

}  // namespace
}  // namespace heaptape::format
