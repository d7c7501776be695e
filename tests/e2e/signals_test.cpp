// Calls in signal handlers that interrupt the recorder anywhere: recorded, or counted, exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"
#include "tests/guests/shared_page.h"

namespace heaptape::e2e {
namespace {

using format::Kind;

class SignalHandlers : public ::testing::TestWithParam<const char*> {};

TEST_P(SignalHandlers, LoseNoCallThatIsNotCounted) {
  const std::uint64_t calls = 1000000 / size_divisor;
  Command command = guest("signal_alloc", {"page", std::to_string(calls), GetParam()});
  command.preload = {guest_path("libbump_malloc.so")};
  Recording recording;
  record(command, recording);
  ASSERT_FALSE(recording.outcome.timed_out);
  ASSERT_EQ(recording.outcome.status, 0) << recording.outcome.err;
  SharedPage page{};
  ASSERT_EQ(recording.outcome.files["page"].size(), sizeof page);
  std::memcpy(&page, recording.outcome.files["page"].data(), sizeof page);
  ASSERT_EQ(page.threads[0].done, calls);
  const std::uint64_t in_handler = page.threads[1].done;
  ASSERT_GT(in_handler, 100U) << "the timer hardly fired";

  Tape tape = tape_of(recording.tapes, guest_path("signal_alloc"));
  const format::RecorderStats stats = tape.info.footer.recorder;
  const std::uint64_t not_recorded = stats.nested_calls + stats.signal_losses;
  RecordProperty("in_handler", std::to_string(in_handler));
  RecordProperty("nested", std::to_string(stats.nested_calls));
  RecordProperty("signal_losses", std::to_string(stats.signal_losses));
  EXPECT_EQ(tape.report.contradictions, 0U);
  EXPECT_EQ(tape.info.footer.recorder.own_allocations, 0U);
  EXPECT_FALSE(tape.info.damage.any());

  // The main program's own calls are all there, in pairs; the handler's are there or counted.
  EXPECT_EQ(tape.count(Kind::malloc, 80), calls / 2);
  EXPECT_EQ(tape.released(80), calls / 2);
  std::uint64_t handler_calls = tape.report.unknown_releases;  // a free whose malloc was nested
  for (const format::Event& event : tape.events) {
    handler_calls += event.size_bytes == 81 || event.released_size_bytes == 81 ? 1U : 0U;
  }
  EXPECT_EQ(handler_calls + not_recorded, in_handler);
  EXPECT_GT(handler_calls, 0U);
}
INSTANTIATE_TEST_SUITE_P(On, SignalHandlers, ::testing::Values("samestack", "altstack"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace heaptape::e2e
