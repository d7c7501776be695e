// Death at any instruction: of the program, and of the recorder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstring>
#include <random>
#include <thread>
#include <unordered_map>

#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"
#include "tests/guests/shared_page.h"

namespace heaptape::e2e {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

SharedPage read_page(const fs::path& path) {
  const std::string content = read_file(path);
  SharedPage page{};
  std::memcpy(&page, content.data(), std::min(content.size(), sizeof page));
  return page;
}

// Waits until the guest has said who it is, and until it is at work if `ready`.
SharedPage wait_for_guest(const fs::path& path, bool ready) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  SharedPage page{};
  do {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    page = read_page(path);
  } while ((page.pid == 0 || (ready && page.ready == 0)) && std::chrono::steady_clock::now() < deadline);
  EXPECT_NE(page.pid, 0U) << "the guest did not come up";
  return page;
}

// Every thread's calls on the tape: all that were done, and at most the one that was under way.
void expect_all_calls(const Tape& tape, const SharedPage& page) {
  std::unordered_map<std::uint64_t, std::uint64_t> on_tape;
  for (const format::Event& event : tape.events) {
    const bool null_free = format::is_release(event.kind) && event.address == 0;  // the C library's own
    if (!event.has(format::EventFlag::implied) && !null_free) {
      ++on_tape[tape.info.threads[static_cast<std::size_t>(event.thread)].tid];
    }
  }
  for (const ThreadAccount& account : page.threads) {
    if (account.tid != 0) {
      const std::uint64_t calls = on_tape[account.tid];
      EXPECT_GE(calls, account.done) << "thread " << account.tid;
      EXPECT_LE(calls, account.begun) << "thread " << account.tid;
      EXPECT_LE(account.begun - account.done, 1U);
    }
  }
}

TEST(Killed, ProgramAtAnyMomentIsOnTheTapeToItsLastCall) {
  const unsigned seed = 4096;
  std::mt19937_64 random(seed);
  const int turns = 200 / size_divisor;
  std::uint64_t calls = 0;
  for (int turn = 0; turn < turns && !HasFailure(); ++turn) {
    SCOPED_TRACE(::testing::Message() << "turn " << turn << ", seed " << seed);
    Recording recording;
    const fs::path folder = recording.folder.path();
    fs::create_directory(folder / "work");
    fs::create_directory(folder / "tapes");
    const std::string threads = std::to_string(1 + random() % 6);
    const bool at_work = turn % 8 != 0;  // else: while it is still starting its threads
    Running running(recorded(guest("counted", {"page", threads, "300"}), folder / "tapes"), folder / "work",
                    folder);
    const pid_t pid = static_cast<pid_t>(wait_for_guest(folder / "work/page", at_work).pid);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % (at_work ? 30000 : 2000)));
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    const Outcome outcome = running.wait();
    ASSERT_FALSE(outcome.timed_out);
    EXPECT_EQ(outcome.status, 128 + SIGKILL);

    const Tape tape = tape_of(tapes_in(folder / "tapes"), guest_path("counted"));
    expect_sound(tape);
    EXPECT_EQ(tape.info.footer.reason, format::EndReason::killed);
    EXPECT_EQ(tape.info.footer.value, SIGKILL);
    expect_all_calls(tape, read_page(folder / "work/page"));
    calls += tape.report.events;
  }
  EXPECT_GT(calls, 1000U * static_cast<unsigned>(turns)) << "the guests hardly came to allocate";
}

TEST(Killed, RecorderLeavesTheProgramRunningToItsEnd) {
  // The guest outlives its parent: this process becomes its parent, to see how it ends.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  std::mt19937_64 random(7);
  for (int turn = 0; turn < 10; ++turn) {
    SCOPED_TRACE(turn);
    Recording recording;
    const fs::path folder = recording.folder.path();
    fs::create_directory(folder / "work");
    fs::create_directory(folder / "tapes");
    Running running(recorded(guest("counted", {"page", "3", "10"}), folder / "tapes"), folder / "work",
                    folder);
    const SharedPage page = wait_for_guest(folder / "work/page", true);
    std::this_thread::sleep_for(milliseconds(random() % 300));
    ASSERT_EQ(::kill(running.pid(), SIGKILL), 0);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    const SharedPage at_death = read_page(folder / "work/page");

    int status = -1;
    pid_t reaped = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while ((reaped = ::waitpid(static_cast<pid_t>(page.pid), &status, WNOHANG)) == 0 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_EQ(reaped, static_cast<pid_t>(page.pid)) << "the program did not end";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(read_file(folder / "out"), "finished\n");
    EXPECT_EQ(read_file(folder / "err"), "");
    const SharedPage at_end = read_page(folder / "work/page");
    for (int t = 0; t < 3; ++t) {
      EXPECT_GT(at_end.threads[t].done, at_death.threads[t].done) << "thread " << t << " stood still";
      EXPECT_EQ(at_end.threads[t].done, at_end.threads[t].begun);
    }

    const Tape tape = tape_of(tapes_in(folder / "tapes"), guest_path("counted"), Events::summed);
    EXPECT_TRUE(tape.info.damage.truncated);
    EXPECT_EQ(tape.info.footer.reason, format::EndReason::unknown);
    EXPECT_EQ(tape.report.contradictions, 0U) << "what is cut off is no contradiction";
  }
}

}  // namespace
}  // namespace heaptape::e2e
