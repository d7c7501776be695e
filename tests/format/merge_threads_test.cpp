// The merge against real threads on a real allocator.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/format/merge_threads.h"

namespace heaptape::format {
namespace {

using merge_test::merge_threads;
using merge_test::record_threads;
using merge_test::ThreadsOutcome;
using merge_test::ThreadsRecording;

// 20 million events in rounds, each a recording of its own, so that memory stays small.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int rounds = 1;
constexpr std::uint32_t events_per_thread = 50'000;
#else
constexpr int rounds = 8;
constexpr std::uint32_t events_per_thread = 312'500;
#endif

TEST(MergeThreads, EightThreadsHandingOverFreeingAndResizingLeaveNoContradictionAndNoWrongPair) {
  if (!merge_test::threads_can_be_stamped()) {
    GTEST_SKIP() << "needs the time stamp counter of x86-64";
  }
  std::uint64_t events = 0;
  std::uint64_t repairs = 0;
  double seconds = 0;
  for (int round = 0; round < rounds; ++round) {
    const ThreadsRecording recording =
        record_threads(8, events_per_thread, static_cast<std::uint64_t>(round) + 1);
    const ThreadsOutcome outcome = merge_threads(recording);
    EXPECT_EQ(outcome.report.contradictions, 0U) << "round " << round;
    EXPECT_EQ(outcome.report.unknown_releases, 0U) << "round " << round;
    EXPECT_EQ(outcome.report.open_reallocs, 0U) << "round " << round;
    EXPECT_EQ(outcome.wrong_pairs, 0U) << "round " << round;
    EXPECT_EQ(outcome.report.events, outcome.events);
    events += recording.events();
    repairs += outcome.report.repairs;
    seconds += outcome.merge_seconds;
  }
  std::cout << events << " events, " << repairs << " repairs, "
            << static_cast<std::uint64_t>(static_cast<double>(events) / seconds) << " merged events/s\n";
}

}  // namespace
}  // namespace heaptape::format
