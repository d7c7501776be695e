// Fork, exec, spawn, daemons and wrappers: whose calls are on whose tape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"

namespace heaptape::e2e {
namespace {

using format::EndReason;
using format::Kind;

// Records and reads all tapes; each must be sound.
std::vector<Tape> record_all(const Command& command, int status) {
  Recording recording;
  record(command, recording);
  EXPECT_FALSE(recording.outcome.timed_out);
  EXPECT_EQ(recording.outcome.status, status) << recording.outcome.err;
  std::vector<Tape> tapes = read_tapes(recording.tapes);
  for (const Tape& tape : tapes) {
    expect_sound(tape);
  }
  return tapes;
}

// How many tapes hold exactly `calls` allocations of `size_bytes` by malloc, and as many frees.
std::size_t tapes_with(const std::vector<Tape>& tapes, std::uint64_t size_bytes, std::uint64_t calls) {
  std::size_t n = 0;
  for (const Tape& tape : tapes) {
    n += tape.count(Kind::malloc, size_bytes) == calls && tape.released(size_bytes) == calls ? 1 : 0;
  }
  return n;
}

TEST(Processes, ForkedFromAThreadedProgramHaveTapesOfTheirOwn) {
  const std::vector<Tape> tapes = record_all(guest("fork_threads"), 0);
  EXPECT_EQ(tapes.size(), 22U) << "the program, twenty children, one grandchild";
  EXPECT_EQ(tapes_with(tapes, 53, 100), 20U);
  EXPECT_EQ(tapes_with(tapes, 54, 50), 2U) << "children with a thread of their own";
  EXPECT_EQ(tapes_with(tapes, 55, 10), 1U);
  for (const Tape& tape : tapes) {
    const bool child = tape.count(Kind::malloc, 53) + tape.count(Kind::malloc, 55) > 0;
    EXPECT_EQ(tape.info.footer.reason, EndReason::exited);
    EXPECT_EQ(tape.info.header.from_start, !child);
    if (child && tape.count(Kind::malloc, 55) == 0) {
      EXPECT_THAT(tape.info.footer.value, ::testing::AllOf(::testing::Ge(0), ::testing::Lt(20)));
    }
  }
}

TEST(Processes, ForkedInASignalHandlerHaveTapesOfTheirOwn) {
  Command command = guest("fork_in_handler");
  command.preload = {guest_path("libbump_malloc.so")};
  Recording recording;
  record(command, recording);
  EXPECT_EQ(recording.outcome.out, "10 forks, 10 good children\n");
  std::size_t children = 0;
  for (const Tape& tape : read_tapes(recording.tapes)) {
    EXPECT_EQ(tape.info.footer.recorder.own_allocations, 0U);
    EXPECT_FALSE(tape.info.damage.any());
    EXPECT_EQ(tape.report.contradictions, 0U);
    if (tape.info.header.program == guest_path("fork_in_handler") && tape.info.footer.value == 9) {
      ++children;
      // A child forked out of a hook is inside that hook for ever: its calls are nested or counted
      // as lost to a signal; forked elsewhere, all forty are on its tape.
      const auto& recorder = tape.info.footer.recorder;
      EXPECT_EQ(
          tape.count(Kind::malloc, 57) + tape.released(57) + recorder.nested_calls + recorder.signal_losses,
          40U);
    }
  }
  EXPECT_EQ(children, 10U);
}

TEST(Processes, ThatExecLeaveOneTapeForEachImage) {
  const std::vector<Tape> tapes = record_all(guest("exec_self", {"execv"}), 5);
  ASSERT_EQ(tapes.size(), 2U);
  EXPECT_EQ(tapes_with(tapes, 91, 10), 1U);
  EXPECT_EQ(tapes_with(tapes, 92, 20), 1U);
  for (const Tape& tape : tapes) {
    const bool first = tape.count(Kind::malloc, 91) > 0;
    EXPECT_EQ(tape.info.footer.reason, first ? EndReason::replaced : EndReason::exited);
    EXPECT_EQ(tape.info.footer.value, first ? 0 : 5);
    EXPECT_EQ(tape.info.header.arguments.at(1), first ? "execv" : "second");
  }
}

TEST(Processes, ThatExecWithAnEmptyEnvironmentGoOnUnrecorded) {
  const std::vector<Tape> tapes = record_all(guest("exec_self", {"clear"}), 5);
  ASSERT_EQ(tapes.size(), 1U);
  EXPECT_EQ(tapes_with(tapes, 91, 10), 1U);
}

class StartedPrograms : public ::testing::TestWithParam<const char*> {};

TEST_P(StartedPrograms, AreRecordedBesideTheirParent) {
  const std::vector<Tape> tapes = record_all(guest("exec_self", {GetParam()}), 0);
  EXPECT_EQ(tapes_with(tapes, 91, 10), 1U);
  EXPECT_EQ(tapes_with(tapes, 92, 20), 1U);
  for (const Tape& tape : tapes) {
    if (tape.count(Kind::malloc, 92) > 0) {
      EXPECT_EQ(tape.count(Kind::malloc, 91), 0U);
      EXPECT_EQ(tape.info.footer.reason, EndReason::exited);
      EXPECT_TRUE(tape.info.header.from_start);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(By, StartedPrograms, ::testing::Values("spawn", "vfork", "system"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(Processes, ThatVforkRecordTheChildAsTheThreadThatWaitsForIt) {
  const std::vector<Tape> tapes = record_all(guest("vfork_child"), 0);
  ASSERT_EQ(tapes.size(), 1U);
  const std::vector<format::Event> events = between_marks(tapes.front().events);
  ASSERT_EQ(events.size(), 300U);
  for (std::size_t i = 0; i < events.size(); i += 2) {
    EXPECT_EQ(events[i].size_bytes, 50 + i / 100) << i;
  }
}

TEST(Processes, ThatBecomeDaemonsAreRecordedOn) {
  const std::vector<Tape> tapes = record_all(guest("daemon"), 0);
  EXPECT_EQ(tapes_with(tapes, 83, 300), 1U);
}

struct Wrapper {
  const char* name;
  std::vector<std::string> argv;
};
void PrintTo(const Wrapper& w, std::ostream* out) { *out << w.name; }
const Wrapper wrappers[] = {
    {"Env", {"/usr/bin/env", "SOME=thing"}},
    {"Shell", {"/bin/sh", "-c", "\"$@\"; status=$?; true; exit $status", "sh"}},
    {"ShellThatExecs", {"/bin/sh", "-c", "exec \"$@\"", "sh"}},
    {"Taskset", {"/usr/bin/taskset", "-c", "0"}},
    {"Nice", {"/usr/bin/nice", "-n", "1"}},
    {"AllOfThem", {"/usr/bin/env", "/usr/bin/taskset", "-c", "0", "/bin/sh", "-c", "\"$@\"", "sh"}},
};

class WrappedProgram : public ::testing::TestWithParam<Wrapper> {};

TEST_P(WrappedProgram, HasATapeThatHoldsTheSameAsUnwrapped) {
  const Command plain = guest("workload_c", {"5000"});
  Recording unwrapped;
  record(plain, unwrapped);
  const Tape expected = tape_of(unwrapped.tapes, guest_path("workload_c"), Events::summed);
  expect_sound(expected);

  Command command = plain;
  command.argv.insert(command.argv.begin(), GetParam().argv.begin(), GetParam().argv.end());
  Recording recording;
  record(command, recording);
  EXPECT_EQ(recording.outcome.status, 0);
  EXPECT_EQ(recording.outcome.out, unwrapped.outcome.out);
  EXPECT_EQ(recording.outcome.err, "");
  const Tape tape = tape_of(recording.tapes, guest_path("workload_c"), Events::summed);
  expect_sound(tape);
  EXPECT_THAT(tape.totals, ::testing::ContainerEq(expected.totals));
}
INSTANTIATE_TEST_SUITE_P(By, WrappedProgram, ::testing::ValuesIn(wrappers),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace heaptape::e2e
