// What every verb owes its user, asked of the built program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace heaptape::cli {
namespace {

using testing::bash;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::heaptape;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing::verbs;

TEST(Cli, AloneItShowsItsHelpAsWrongUsage) {
  const auto r = heaptape({});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.out, IsEmpty());
  EXPECT_THAT(r.err, HasSubstr("Examples:"));
}

TEST(Cli, HelpIsFineAndListsEveryVerb) {
  const auto r = heaptape({"--help"});
  EXPECT_EQ(r.exit_code, 0);
  for (const std::string& verb : verbs()) {
    EXPECT_THAT(r.out, HasSubstr("\n  " + verb)) << verb;
  }
}

TEST(Cli, EveryVerbsHelpShowsAnExampleOfThatVerb) {
  const auto names = verbs();
  ASSERT_THAT(names, Contains("completion"));
  for (const std::string& verb : names) {
    const auto r = heaptape({verb, "--help"});
    EXPECT_EQ(r.exit_code, 0) << verb;
    EXPECT_THAT(r.out, HasSubstr("Example")) << verb;
    EXPECT_THAT(r.out, HasSubstr("heaptape " + verb + " ")) << verb;
    EXPECT_THAT(r.out, HasSubstr("--quiet")) << verb;
  }
}

TEST(Cli, EveryVerbAnswersWrongUsageWithOneLineAndCode2) {
  for (const std::string& verb : verbs()) {
    const auto r = heaptape({verb, "--no-such-option"});
    EXPECT_EQ(r.exit_code, 2) << verb;
    EXPECT_THAT(r.out, IsEmpty()) << verb;
    EXPECT_THAT(r.err, StartsWith("heaptape " + verb + ": "));
    EXPECT_THAT(r.err, EndsWith("(see heaptape " + verb + " --help)\n"));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

TEST(Cli, VersionIsPrinted) {
  const auto r = heaptape({"--version"});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.out, "heaptape " HEAPTAPE_VERSION "\n");
}

TEST(Cli, AMistypedVerbIsWrongUsageAndTheNearestIsNamed) {
  const auto r = heaptape({"completoin"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("did you mean 'completion'?"));
}

TEST(Cli, AWordLikeNoVerbIsWrongUsageWithoutASuggestion) {
  const auto r = heaptape({"frobnicate", "x"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("no verb 'frobnicate'"));
  EXPECT_THAT(r.err, Not(HasSubstr("did you mean")));
}

TEST(Cli, AFullDiskBehindStandardOutputIsAnErrorOfTheSystem) {
  const auto r = bash("\"$heaptape\" completion bash > /dev/full");
  EXPECT_EQ(r.exit_code, 4);
  EXPECT_THAT(r.err, HasSubstr("standard output"));
}

TEST(Cli, AReaderThatLeavesEarlyCausesNoMessage) {
  // Both with the usual disposition of SIGPIPE and where a parent had it ignored.
  for (const char* before : {"", "trap '' PIPE; "}) {
    const auto r = bash(std::string(before) + "\"$heaptape\" completion bash | true; exit 0");
    EXPECT_THAT(r.err, IsEmpty());
  }
}

TEST(Completion, IsAScriptThatBashAccepts) {
  const auto r = bash(R"(set -eu; source <("$heaptape" completion bash); complete -p heaptape)");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("_heaptape"));
}

TEST(Completion, ForAShellThatIsNotKnownIsWrongUsage) {
  EXPECT_EQ(heaptape({"completion", "bash"}).exit_code, 0);
  const auto r = heaptape({"completion", "csh"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("bash"));
}

TEST(Completion, OffersVerbsOptionsAndFixedValues) {
  const std::string setup = R"(source <("$heaptape" completion bash); )";
  const std::string show = R"(; _heaptape; echo "${COMPREPLY[@]}")";
  EXPECT_EQ(bash(setup + "COMP_WORDS=(heaptape comp); COMP_CWORD=1" + show).out, "completion\n");
  EXPECT_EQ(bash(setup + "COMP_WORDS=(heaptape replay --order t); COMP_CWORD=3" + show).out, "total\n");
  EXPECT_EQ(bash(setup + "COMP_WORDS=(heaptape completion --q); COMP_CWORD=2" + show).out, "--quiet\n");
}

}  // namespace
}  // namespace heaptape::cli
