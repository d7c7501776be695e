// Threads: short ones, many, on tiny stacks, and what they do at their very end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"

namespace heaptape::e2e {
namespace {

using format::Kind;

Tape record_one(const Command& command) {
  Recording recording;
  record(command, recording);
  EXPECT_FALSE(recording.outcome.timed_out);
  EXPECT_EQ(recording.outcome.status, 0) << recording.outcome.err;
  Tape tape = tape_of(recording.tapes, command.argv.front());
  expect_sound(tape);
  return tape;
}

// What each thread of the guest `threads` does, times `n`.
void expect_threads(const Tape& tape, std::uint64_t n) {
  EXPECT_EQ(tape.info.threads.size(), n + 1);
  EXPECT_EQ(tape.count(Kind::malloc, 77), n);
  EXPECT_EQ(tape.released(77), n);
  EXPECT_EQ(tape.count(Kind::calloc, 39), n);
  EXPECT_EQ(tape.released(39), n);
  for (const std::uint64_t size : {15, 150, 1500}) {
    EXPECT_EQ(tape.count(Kind::realloc, size), n) << size;
    EXPECT_EQ(tape.released(size), n) << size;
  }
}

TEST(Threads, ThatAreShortAreAllOnTheTape) {
  const int threads = 10000 / size_divisor;
  expect_threads(record_one(guest("threads", {std::to_string(threads), "1"})),
                 static_cast<std::uint64_t>(threads));
}

TEST(Threads, ThatAreAThousandAtATimeAreAllOnTheTape) {
  expect_threads(record_one(guest("threads", {"2000", "1000"})), 2000);
}

TEST(Threads, OnStacksOfTwentyKilobytesAreAllOnTheTape) {
  expect_threads(record_one(guest("threads", {"256", "32", "20480"})), 256);
}

TEST(Threads, AreRecordedThroughAllPassesOfTheirKeyDestructors) {
  const Tape tape = record_one(guest("key_destructors", {"100"}));
  EXPECT_EQ(tape.count(Kind::malloc, 61), 100U * 8 * 4);
  EXPECT_EQ(tape.released(61), 100U * 8 * 4);
  EXPECT_EQ(tape.count(Kind::malloc, 62), 100U);
  EXPECT_EQ(tape.released(62), 0U);
}

TEST(Threads, AreRecordedThroughTheDestructorsOfTheirThreadLocals) {
  const Tape tape = record_one(guest("thread_locals"));
  EXPECT_EQ(tape.count(Kind::operator_new, 66), 400U);
  EXPECT_EQ(tape.released(66), 400U);
  EXPECT_EQ(tape.count(Kind::operator_new, 65), 40U);
  EXPECT_EQ(tape.released(65), 40U);
}

TEST(Exits, LeaveEveryCallOnTheTapeAndSayHowItWas) {
  struct Exit {
    std::string mode;
    format::EndReason reason;
    int value;
    std::uint64_t at_exit;  // calls in handlers that run at exit
  };
  const Exit exits[] = {
      {"return", format::EndReason::exited, 7, 10},       {"_exit", format::EndReason::exited, 3, 0},
      {"quick_exit", format::EndReason::exited, 4, 10},   {"abort", format::EndReason::killed, 6, 0},
      {"kill", format::EndReason::killed, 9, 0},          {"segv", format::EndReason::killed, 11, 0},
      {"term", format::EndReason::killed, 15, 0},         {"thread", format::EndReason::exited, 5, 10},
      {"pthread_exit", format::EndReason::exited, 6, 10},
  };
  for (const Exit& exit : exits) {
    SCOPED_TRACE(exit.mode);
    Recording recording;
    record(guest("exits", {exit.mode}), recording);
    const Tape tape = tape_of(recording.tapes, guest_path("exits"));
    expect_sound(tape);
    EXPECT_EQ(tape.info.footer.reason, exit.reason);
    EXPECT_EQ(tape.info.footer.value, exit.value);
    EXPECT_EQ(tape.count(Kind::malloc, 71), 500U);
    EXPECT_EQ(tape.released(71), 500U);
    EXPECT_EQ(tape.count(Kind::malloc, 72), 20U);
    EXPECT_EQ(tape.released(72), 0U);
    EXPECT_EQ(tape.count(Kind::malloc, 73), exit.at_exit);
    EXPECT_EQ(tape.released(73), exit.at_exit);
    if (exit.mode == "thread") {
      EXPECT_EQ(tape.count(Kind::malloc, 75), 20000U);
    }
    if (exit.mode == "pthread_exit") {
      EXPECT_EQ(tape.released(76), 100U);
    }
  }
}

TEST(Libraries, AreRecordedFromTheirConstructorsToTheirDestructors) {
  const Tape tape = record_one(guest("early_host"));
  EXPECT_EQ(tape.count(Kind::malloc, 171), 10U);
  EXPECT_EQ(tape.released(171), 10U);
  EXPECT_EQ(tape.count(Kind::malloc, 172), 10U);
  EXPECT_EQ(tape.released(172), 10U);
  for (const std::uint64_t size : {173, 174, 175}) {
    EXPECT_EQ(tape.count(Kind::malloc, size), 1U) << size;
    EXPECT_EQ(tape.released(size), 1U) << size;
  }
}

}  // namespace
}  // namespace heaptape::e2e
