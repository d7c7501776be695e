#include "replayer/measure/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "replayer/measure/version.h"

namespace heaptape::replayer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A folder with a library that holds the names of settings, as real ones do.
class CandidateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("heaptape-candidate-{}", ::getpid());
    std::filesystem::create_directories(folder_);
    std::ofstream(library("libx.so"), std::ios::binary)
        << std::string("opt.purge_delay\0dirty_decay_ms\0", 31);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string library(const std::string& name) const { return (folder_ / name).native(); }
  static std::string error(const std::string& text) {
    const auto c = parse_candidate(text);
    EXPECT_FALSE(c) << text;
    EXPECT_EQ(c.error().code(), format::ExitCode::usage);
    return c.error().message();
  }
  std::filesystem::path folder_;
};

TEST_F(CandidateTest, TheCLibraryAndBuiltInHeapsNeedNoLibrary) {
  const auto glibc = parse_candidate("glibc");
  ASSERT_TRUE(glibc);
  EXPECT_EQ(glibc->access, Access::process);
  EXPECT_EQ(glibc->label, "glibc");
  EXPECT_TRUE(glibc->environment.empty());
  EXPECT_EQ(parse_candidate("null")->access, Access::builtin);
}

TEST_F(CandidateTest, TunablesOfGlibcBecomeItsVariableAndPartOfTheLabel) {
  const auto c = parse_candidate("glibc:arena_max=1,tcache_count=0");
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->label, "glibc:arena_max=1,tcache_count=0");
  EXPECT_EQ(c->name, "glibc");
  EXPECT_THAT(c->environment,
              ElementsAre("GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0"));
}

TEST_F(CandidateTest, AMistypedSettingIsRefusedAndNotIgnored) {
  EXPECT_THAT(error("glibc:arena_maxx=1"), HasSubstr("arena_maxx"));
  EXPECT_THAT(error("jemalloc=" + library("libx.so") + ":dirty_decay=0"), HasSubstr("dirty_decay"));
  EXPECT_THAT(error("glibc:arena_max"), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(error("null:size=1"), HasSubstr("no settings"));
}

TEST_F(CandidateTest, AKnownAllocatorFromElsewhereKeepsItsWayOfTakingSettings) {
  const auto c = parse_candidate("jemalloc=" + library("libx.so") + ":dirty_decay_ms=0");
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->access, Access::preload);
  EXPECT_EQ(c->library, library("libx.so"));
  EXPECT_EQ(c->label, "jemalloc:dirty_decay_ms=0");
  EXPECT_THAT(c->environment, ElementsAre("MALLOC_CONF=dirty_decay_ms:0"));
  const auto mimalloc = parse_candidate("mimalloc=" + library("libx.so") + ":purge_delay=0");
  ASSERT_TRUE(mimalloc) << mimalloc.error().message();
  EXPECT_THAT(mimalloc->environment, ElementsAre("MIMALLOC_PURGE_DELAY=0"));
}

TEST_F(CandidateTest, AnyLibraryComesByPreloadOrByItsPrefix) {
  const auto preloaded = parse_candidate("mine=" + library("libx.so"));
  ASSERT_TRUE(preloaded);
  EXPECT_EQ(preloaded->access, Access::preload);
  const auto prefixed = parse_candidate("ned=" + library("libx.so") + ",prefix=ned");
  ASSERT_TRUE(prefixed);
  EXPECT_EQ(prefixed->access, Access::library);
  EXPECT_EQ(prefixed->prefix, "ned");
  EXPECT_EQ(prefixed->label, "ned");
  const auto with_variable = parse_candidate("mine=" + library("libx.so") + ":MINE_CACHE=4");
  ASSERT_TRUE(with_variable);
  EXPECT_THAT(with_variable->environment, ElementsAre("MINE_CACHE=4"));
}

TEST_F(CandidateTest, ARelativePathIsMadeAbsoluteBecauseTheEngineMayRunElsewhere) {
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const auto c = parse_candidate("mine=./libx.so");
  std::filesystem::current_path(here);
  ASSERT_TRUE(c);
  EXPECT_TRUE(c->library.is_absolute());
}

TEST_F(CandidateTest, LibrariesAreFoundByNameInLdLibraryPath) {
  ::setenv("LD_LIBRARY_PATH", folder_.c_str(), 1);
  const auto c = parse_candidate("mine=libx.so");
  ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->library, library("libx.so"));
}

TEST_F(CandidateTest, WhatCannotBeIsAUsageErrorThatSaysWhatToDo) {
  EXPECT_THAT(error("nosuch"), HasSubstr("jemalloc"));
  EXPECT_THAT(error("mine=/nonexistent/lib.so"), HasSubstr("give its path"));
  EXPECT_THAT(error(""), HasSubstr("NAME"));
  EXPECT_THAT(error("=x"), HasSubstr("NAME"));
  EXPECT_THAT(error("glibc=" + library("libx.so")), HasSubstr("choose another name"));
  std::filesystem::create_directories(folder_ / "a b");
  std::ofstream(library("a b/liby.so")) << "x";
  EXPECT_THAT(error("mine=" + library("a b/liby.so")), HasSubstr("blank"));
}

TEST_F(CandidateTest, TheArenaTakesItsSizeAndPassesOtherSettingsOn) {
  const auto c = parse_candidate("arena:size=64M,fit=best");
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->arena_bytes, 64U << 20);
  EXPECT_EQ(c->tunables, "fit=best");
  EXPECT_THAT(error("arena:size=many"), HasSubstr("many"));
}

TEST_F(CandidateTest, LabelsAreUniqueEvenForTheSameCandidateTwice) {
  const std::vector<std::string> texts{"glibc", "glibc", "glibc:arena_max=1", "glibc"};
  const auto all = parse_candidates(texts);
  ASSERT_TRUE(all);
  std::vector<std::string> labels;
  for (const Candidate& c : *all) {
    labels.push_back(c.label);
  }
  EXPECT_THAT(labels, ElementsAre("glibc", "glibc#2", "glibc:arena_max=1", "glibc#3"));
}

TEST_F(CandidateTest, TheInstalledOnesIncludeTheCLibraryAndTheArenaButNotNull) {
  std::vector<std::string> labels;
  for (const Candidate& c : installed_candidates()) {
    labels.push_back(c.label);
  }
  EXPECT_THAT(labels, testing::Contains("glibc"));
  EXPECT_THAT(labels, testing::Contains("arena"));
  EXPECT_THAT(labels, testing::Not(testing::Contains("null")));
}

TEST_F(CandidateTest, VersionsAreWrittenShortAndNeverThoseOfAnother) {
  Candidate candidate;
  EXPECT_EQ(version_of(candidate, "glibc 2.36"), "2.36");
  EXPECT_EQ(version_of(candidate, "mimalloc 209"), "2.0.9");
  EXPECT_EQ(version_of(candidate, "mimalloc 30104"), "3.1.4");
  EXPECT_EQ(version_of(candidate, "jemalloc 5.3.0-0-g54eaed1d8b56"), "5.3.0");
  EXPECT_EQ(version_of(candidate, "tcmalloc gperftools 2.10"), "gperftools 2.10");
  EXPECT_EQ(version_of(candidate, ""), "");
  candidate.access = Access::preload;
  std::ofstream(library("liby.so.2.8")) << "x";
  std::filesystem::create_symlink("liby.so.2.8", folder_ / "liby.so.2");
  candidate.library = library("liby.so.2");
  EXPECT_EQ(version_of(candidate, "glibc 2.36"), "2.8");
  EXPECT_EQ(version_of(candidate, "tbbmalloc"), "2.8");
  std::filesystem::create_directories(folder_ / "clang/14.0.6/lib");
  std::ofstream(library("clang/14.0.6/lib/libz.so")) << "x";
  candidate.library = library("clang/14.0.6/lib/libz.so");
  EXPECT_EQ(version_of(candidate, "glibc 2.36"), "clang 14.0.6");
}

}  // namespace
}  // namespace heaptape::replayer
