// The driver against engines that misbehave: shell scripts in the engine's place.
#include "replayer/measure/engine_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "replayer/measure/session.h"
#include "replayer/plan/compile.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

using testing::HasSubstr;

class EngineProcess : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("heaptape-engine-test-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path script(const std::string& body) const {
    const auto path = folder_ / "engine";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  static Plan plan() {
    format::VectorCursor cursor(random_tape(1, 100, 1, 10).events());
    return std::move(*compile_plan(cursor, {}));
  }
  [[nodiscard]] EngineOutcome run(const std::string& body, const Candidate& candidate = {}) const {
    EngineSettings settings;
    settings.engine = script(body);
    settings.timeout = std::chrono::seconds(20);
    auto outcome = run_engine(plan(), candidate, RunMode::space, settings);
    EXPECT_TRUE(outcome) << outcome.error().message();
    return *outcome;
  }
  std::filesystem::path folder_;
};

TEST_F(EngineProcess, ACrashIsAFailureThatNamesTheSignalAndWhatWasPrinted) {
  const EngineOutcome o = run("echo; echo 'heap is corrupted' >&2; kill -SEGV $$");
  EXPECT_THAT(o.failure, HasSubstr("SIGSEGV"));
  EXPECT_THAT(o.failure, HasSubstr("heap is corrupted"));
  EXPECT_TRUE(o.instants.empty());
}

TEST_F(EngineProcess, AnEngineThatHangsIsKilled) {
  EngineSettings settings;
  settings.engine = script("exec sleep 1000");
  settings.timeout = std::chrono::milliseconds(50);
  const auto o = run_engine(plan(), {}, RunMode::time, settings);
  ASSERT_TRUE(o);
  EXPECT_THAT(o->failure, HasSubstr("--timeout"));
}

TEST_F(EngineProcess, AnExitWithoutAResultIsAFailure) {
  EXPECT_THAT(run("exit 7").failure, HasSubstr("exit status 7"));
}

TEST_F(EngineProcess, AFloodOfOutputNeitherBlocksNorFillsMemory) {
  EXPECT_THAT(run("head -c 10000000 /dev/zero | tr '\\0' x; exit 3").failure, HasSubstr("exit status 3"));
}

TEST_F(EngineProcess, TheEnvironmentHoldsOnlyWhatTheCandidateNeeds) {
  ::setenv("MALLOC_CONF", "abort:true", 1);
  Candidate candidate;
  candidate.access = Access::preload;
  candidate.library = "/nonexistent.so";  // the dynamic linker only warns
  candidate.environment = {"KEY=VALUE"};
  // `env` itself runs under the preload; its words about it come first.
  const EngineOutcome o =
      run("/usr/bin/env 2>/dev/null | grep -v -e ^PWD -e ^_ -e ^SHLVL -e OLDPWD | sort | tr '\\n' ' ' > " +
              (folder_ / "environment").native(),
          candidate);
  ::unsetenv("MALLOC_CONF");
  std::ifstream file(folder_ / "environment");
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "KEY=VALUE LD_PRELOAD=/nonexistent.so ") << o.failure;
}

TEST_F(EngineProcess, AMissingEngineIsAnErrorThatSaysWhereItWasSought) {
  EngineSettings settings;
  settings.engine = folder_ / "nothing";
  const auto o = run_engine(plan(), {}, RunMode::time, settings);
  ASSERT_FALSE(o);
  EXPECT_EQ(o.error().code(), format::ExitCode::system);
  ::setenv("HEAPTAPE_ENGINE", "/nonexistent/engine", 1);
  const auto found = find_engine();
  ::unsetenv("HEAPTAPE_ENGINE");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(), HasSubstr("/nonexistent/engine"));
}

TEST_F(EngineProcess, TheEngineGetsNoneOfTheDriversOtherDescriptors) {
  const format::Descriptor inheritable(::fcntl(STDERR_FILENO, F_DUPFD, 50));
  EXPECT_THAT(run("ls -x -w 0 /proc/$$/fd > " + (folder_ / "list").native()).failure,
              HasSubstr("did not start"));
  std::ifstream file(folder_ / "list");
  std::string text;
  std::getline(file, text);
  // The shell itself has some from 10 on.
  EXPECT_THAT(text, testing::MatchesRegex("0  1( +1[0-9])*  2  3  4"));
}

}  // namespace
}  // namespace heaptape::replayer
