// Random recordings with every distortion of stamps that real ones have, merged and compared with
// what truly happened.
#include <gtest/gtest.h>

#include <random>

#include "tests/format/merge_playback.h"

namespace heaptape::format {
namespace {

using merge_test::Block;
using merge_test::Entry;
using merge_test::Outcome;
using merge_test::play;
using merge_test::Recording;
using merge_test::Shape;
using merge_test::simulate;

// Another mixture of everything for every seed.
Shape shape_of(std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919);
  const auto one_of = [&](std::initializer_list<std::uint64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  Shape shape;
  shape.seed = seed;
  shape.threads = static_cast<std::uint32_t>(one_of({1, 2, 3, 4, 8, 20}));
  shape.addresses = static_cast<std::uint32_t>(shape.threads * one_of({3, 8, 100}) + 8);
  shape.prefix_calls = static_cast<std::uint32_t>(one_of({0, 0, 300}));
  shape.early_percent = static_cast<std::uint32_t>(one_of({0, 5, 50, 100}));
  shape.early_ticks = one_of({50, 1000, 5000, 15000});
  shape.late_permille = static_cast<std::uint32_t>(one_of({0, 2, 20}));
  shape.pass_ticks = one_of({1000, 30000, 500000});
  shape.marks_percent = static_cast<std::uint32_t>(one_of({0, 10, 100}));
  shape.resize_percent = static_cast<std::uint32_t>(one_of({0, 10, 60}));
  shape.gap_ticks = one_of({30, 300, 3000});
  shape.clock = one_of({0, 0, 0, 1}) == 0 ? ClockSource::tsc : ClockSource::sequence;
  return shape;
}

TEST(MergeProperty, ACompleteRecordingMergesIntoTheTruePairingWithoutContradictions) {
  std::uint64_t repairs = 0;
  std::uint64_t late = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Shape shape = shape_of(seed);
    SCOPED_TRACE(shape.name());
    const Recording recording = simulate(shape);
    const Outcome outcome = play(recording);
    ASSERT_EQ(outcome.wrong_pairs, 0U) << outcome.first_wrong;
    ASSERT_EQ(outcome.report.contradictions, 0U);
    ASSERT_EQ(outcome.report.unknown_releases, 0U);
    ASSERT_EQ(outcome.report.implied_by_damage, 0U);
    ASSERT_LE(outcome.most_buffered, outcome.two_intervals);
    repairs += outcome.report.repairs;
    late += outcome.report.late_events;
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GT(repairs, 5000U) << "the recordings must have something to repair";
  EXPECT_GT(late, 100U);
}

}  // namespace
}  // namespace heaptape::format
