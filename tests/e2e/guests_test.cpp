// Every guest, alone and under the recorder: whatever can be seen of it is the same, and every tape
// it leaves is sound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"

namespace heaptape::e2e {
namespace {

struct Guest {
  const char* name;  // of the test
  const char* program;
  std::vector<std::string> arguments;
  const char* preload = nullptr;   // a guest library below the recorder
  bool interrupts_itself = false;  // calls in signal handlers may interrupt the recorder: counted as lost
  int status = 0;                  // what it must return both times
};

void PrintTo(const Guest& g, std::ostream* out) { *out << g.name; }

const Guest guests[] = {
    {"EntryPointsOfC", "entry_points_c", {}},
    {"EntryPointsOfCxx", "entry_points_cxx", {}},
    {"ErrnoAroundEveryCall", "errno_kept", {}},
    {"EdgesOfTheInterface", "edge_cases", {}},
    {"CHostWithCxxPlugIn", "plugin_host", {HEAPTAPE_GUESTS "/libplugin.so"}},
    {"ThrowingNew", "throwing_new", {}},
    {"LongJumpOutOfNew", "longjmp_out", {}},
    {"LongJumpOutOfMalloc", "jump_from_signal", {}, "libraising_malloc.so"},
    {"AllocationInASignalHandler", "signal_alloc", {"page", "300000"}, "libbump_malloc.so", true},
    {"AllocationOnASignalStack", "signal_alloc", {"page", "300000", "altstack"}, "libbump_malloc.so", true},
    {"ForkInASignalHandler", "fork_in_handler", {}, "libbump_malloc.so", true},
    {"ForkWithThreads", "fork_threads", {}},
    {"Exec", "exec_self", {"execv"}, nullptr, false, 5},
    {"ExecWithNoEnvironment", "exec_self", {"clear"}, nullptr, false, 5},
    {"PosixSpawn", "exec_self", {"spawn"}},
    {"VforkAndExec", "exec_self", {"vfork"}},
    {"System", "exec_self", {"system"}},
    {"VforkChildThatAllocates", "vfork_child", {}},
    {"KeyDestructors", "key_destructors", {"50"}},
    {"ThreadLocalDestructors", "thread_locals", {}},
    {"ShortThreads", "threads", {"2000", "1"}},
    {"ManyThreadsAlive", "threads", {"1000", "500"}},
    {"ThreadsOnTinyStacks", "threads", {"64", "32", "20480"}},
    {"Return", "exits", {"return"}, nullptr, false, 7},
    {"UnderscoreExit", "exits", {"_exit"}, nullptr, false, 3},
    {"QuickExit", "exits", {"quick_exit"}, nullptr, false, 4},
    {"Abort", "exits", {"abort"}, nullptr, false, 128 + 6},
    {"KillsItself", "exits", {"kill"}, nullptr, false, 128 + 9},
    {"SegmentationFault", "exits", {"segv"}, nullptr, false, 128 + 11},
    {"Terminated", "exits", {"term"}, nullptr, false, 128 + 15},
    {"ExitInASecondThread", "exits", {"thread"}, nullptr, false, 5},
    {"PthreadExitFromMain", "exits", {"pthread_exit"}, nullptr, false, 6},
    {"Daemon", "daemon", {}},
    {"ConstructorsOfOtherLibraries", "early_host", {}},
    {"HandOver", "handover", {"4", "200000"}},
    {"WorkloadOfC", "workload_c", {"50000"}},
    {"WorkloadOfCxx", "workload_cxx", {"100"}},
};

class GuestUnderTheRecorder : public ::testing::TestWithParam<Guest> {};

TEST_P(GuestUnderTheRecorder, BehavesAsAloneAndLeavesSoundTapes) {
  const Guest& g = GetParam();
  Command command = guest(g.program, g.arguments);
  if (g.preload != nullptr) {
    command.preload = {guest_path(g.preload)};
  }
  const Outcome alone = run(command);
  Recording recording;
  record(command, recording);
  const Outcome& watched = recording.outcome;

  ASSERT_FALSE(alone.timed_out);
  ASSERT_FALSE(watched.timed_out);
  EXPECT_EQ(alone.status, g.status);
  EXPECT_EQ(watched.status, g.status);
  EXPECT_EQ(watched.out, alone.out);
  EXPECT_EQ(watched.err, alone.err);
  EXPECT_EQ(watched.files.size(), alone.files.size());
  for (const auto& [name, content] : alone.files) {
    ASSERT_TRUE(watched.files.contains(name)) << name;
    if (name != "page") {  // a guest's account of its own calls differs between any two runs
      EXPECT_EQ(watched.files.at(name), content) << name;
    }
  }
  ASSERT_THAT(recording.tapes, ::testing::Not(::testing::IsEmpty()));
  for (Tape& tape : read_tapes(recording.tapes)) {
    if (g.interrupts_itself) {
      // Told, and exactly: see signals_test.cpp.
      tape.info.footer.recorder.signal_losses = 0;
      tape.report.unknown_releases = 0;
    }
    expect_sound(tape);
    EXPECT_THAT(tape.events, ::testing::Not(::testing::IsEmpty())) << tape.path;
  }
}

INSTANTIATE_TEST_SUITE_P(Guests, GuestUnderTheRecorder, ::testing::ValuesIn(guests),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace heaptape::e2e
