// Another allocator below the recorder: the program keeps its own, and the tape names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"

namespace heaptape::e2e {
namespace {

namespace fs = std::filesystem;

struct Allocator {
  const char* name;
  const char* file;
};
void PrintTo(const Allocator& a, std::ostream* out) { *out << a.name; }
const Allocator allocators[] = {
    {"Jemalloc", "libjemalloc.so.2"},
    {"Mimalloc", "libmimalloc.so.2.0"},
    {"Tcmalloc", "libtcmalloc_minimal.so.4"},
    {"Tbbmalloc", "libtbbmalloc_proxy.so.2"},
};

class AllocatorBelow : public ::testing::TestWithParam<Allocator> {
 protected:
  void SetUp() override {
    for (const char* folder : {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib/"}) {
      if (library_.empty() && fs::exists(std::string(folder) + GetParam().file)) {
        library_ = std::string(folder) + GetParam().file;
      }
    }
    if (library_.empty()) {
      GTEST_SKIP() << GetParam().file << " is not installed";
    }
  }

  // Alone and recorded the same; returns the tape.
  Tape check(Command command) {
    command.preload = {library_};
    const Outcome alone = run(command);
    Recording recording;
    record(command, recording);
    EXPECT_FALSE(recording.outcome.timed_out);
    EXPECT_EQ(alone.status, 0) << alone.err;
    EXPECT_EQ(recording.outcome.status, 0);
    EXPECT_EQ(recording.outcome.out, alone.out);
    EXPECT_EQ(recording.outcome.err, alone.err);
    Tape tape = tape_of(recording.tapes, fs::canonical(command.argv.front()).string());
    expect_sound(tape);
    EXPECT_EQ(fs::weakly_canonical(tape.info.header.allocator), fs::canonical(library_));
    return tape;
  }

  std::string library_;
};

TEST_P(AllocatorBelow, ServesACProgram) { check(guest("workload_c", {"50000"})); }
TEST_P(AllocatorBelow, ServesACxxProgram) { check(guest("workload_cxx", {"100"})); }
TEST_P(AllocatorBelow, ServesAPlugIn) { check(guest("plugin_host", {guest_path("libplugin.so")})); }
TEST_P(AllocatorBelow, ServesForkedChildren) { check(guest("exec_self", {"spawn"})); }
TEST_P(AllocatorBelow, ServesThreads) {
  const Tape tape = check(guest("threads", {"200", "20"}));
  EXPECT_EQ(tape.count(format::Kind::malloc, 77), 200U);
  EXPECT_EQ(tape.released(1500), 200U);
}
TEST_P(AllocatorBelow, ServesThreadsThatHandOver) {
  const Tape tape = check(guest("handover", {"8", "400000"}));
  EXPECT_GE(tape.report.events, 400000U);
}

INSTANTIATE_TEST_SUITE_P(Is, AllocatorBelow, ::testing::ValuesIn(allocators),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace heaptape::e2e
