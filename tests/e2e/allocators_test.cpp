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

  // Alone and recorded the same; returns the tapes of that program, all sound.
  std::vector<Tape> check(Command command) {
    command.preload = {library_};
    const Outcome alone = run(command);
    Recording recording;
    record(command, recording);
    EXPECT_FALSE(recording.outcome.timed_out);
    EXPECT_EQ(alone.status, 0) << alone.err;
    EXPECT_EQ(recording.outcome.status, 0);
    EXPECT_EQ(recording.outcome.out, alone.out);
    EXPECT_EQ(recording.outcome.err, alone.err);
    std::vector<Tape> tapes = read_tapes(recording.tapes);
    std::erase_if(tapes, [&](const Tape& tape) { return tape.program() != command.argv.front(); });
    for (const Tape& tape : tapes) {
      expect_sound(tape);
      EXPECT_EQ(fs::weakly_canonical(tape.info.header.allocator), fs::canonical(library_));
    }
    return tapes;
  }

  std::string library_;
};

TEST_P(AllocatorBelow, ServesACProgram) {
  EXPECT_THAT(check(guest("workload_c", {"50000"})), ::testing::SizeIs(1));
}
TEST_P(AllocatorBelow, ServesACxxProgram) {
  EXPECT_THAT(check(guest("workload_cxx", {"100", "lucky"})), ::testing::SizeIs(1));
}
TEST_P(AllocatorBelow, ServesAPlugIn) {
  EXPECT_THAT(check(guest("plugin_host", {guest_path("libplugin.so")})), ::testing::SizeIs(1));
}
TEST_P(AllocatorBelow, ServesForkedChildren) {
  if (std::string(GetParam().name) == "Tbbmalloc") {
    GTEST_SKIP() << "tbbmalloc keeps its locks over fork: children of threaded programs hang without us, too";
  }
  EXPECT_THAT(check(guest("fork_threads")), ::testing::SizeIs(22));
}
TEST_P(AllocatorBelow, ServesThreads) {
  const std::vector<Tape> tapes = check(guest("threads", {"200", "20"}));
  ASSERT_THAT(tapes, ::testing::SizeIs(1));
  EXPECT_EQ(tapes.front().count(format::Kind::malloc, 77), 200U);
  EXPECT_EQ(tapes.front().released(1500), 200U);
}
TEST_P(AllocatorBelow, ServesThreadsThatHandOver) {
  const std::vector<Tape> tapes = check(guest("handover", {"8", "400000"}));
  ASSERT_THAT(tapes, ::testing::SizeIs(1));
  EXPECT_GE(tapes.front().report.events, 400000U);
}

INSTANTIATE_TEST_SUITE_P(Is, AllocatorBelow, ::testing::ValuesIn(allocators),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace heaptape::e2e
