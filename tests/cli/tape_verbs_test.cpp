// The verbs that read tapes, asked as a user asks: by command line, exit code and output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/cli/tapes.h"
#include "tests/format/tape_support.h"

namespace heaptape::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;
using testing::bash;
using testing::heaptape;

const std::vector<std::string> reading_verbs = {"info", "check", "stats", "print"};

class TapeVerbs : public ::testing::Test {
 protected:
  void SetUp() override { testing::write_tape(tape_, 10); }
  [[nodiscard]] Json json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin() + 1, tape_);
    arguments.emplace_back("--json");
    const auto r = heaptape(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_THAT(r.err, IsEmpty());
    return Json::parse(r.out);
  }
  [[nodiscard]] std::vector<std::string> lines(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin() + 1, tape_);
    std::istringstream out(heaptape(arguments).out);
    std::vector<std::string> result;
    for (std::string line; std::getline(out, line);) {
      result.push_back(line);
    }
    return result;
  }

  format::TemporaryFolder folder_;
  std::string tape_ = (folder_ / "sample.tape").string();
};

TEST_F(TapeVerbs, AMissingTapeIsABadTapeAndTheMessageSaysWhatToDo) {
  for (const std::string& verb : reading_verbs) {
    const auto r = heaptape({verb, (folder_ / "none.tape").string()});
    EXPECT_EQ(r.exit_code, 3) << verb;
    EXPECT_THAT(r.out, IsEmpty());
    EXPECT_THAT(r.err, StartsWith("heaptape: "));
    EXPECT_THAT(r.err, HasSubstr("none.tape"));
    EXPECT_THAT(r.err, HasSubstr("heaptape record")) << "what to do";
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1);
  }
}

TEST_F(TapeVerbs, WhatIsNoTapeIsABadTape) {
  format::write_file(folder_ / "text", "I am a text, and not a short one. " + std::string(5000, 'x'));
  format::write_file(folder_ / "empty", "");
  for (const std::string& verb : reading_verbs) {
    for (const char* name : {"text", "empty", "."}) {
      const auto r = heaptape({verb, (folder_ / name).string()});
      EXPECT_EQ(r.exit_code, 3) << verb << " " << name;
      EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    }
  }
}

TEST_F(TapeVerbs, WithoutATapeIsWrongUsage) {
  for (const std::string& verb : reading_verbs) {
    const auto r = heaptape({verb});
    EXPECT_EQ(r.exit_code, 2) << verb;
    EXPECT_THAT(r.err, HasSubstr("TAPE")) << verb;
  }
}

TEST_F(TapeVerbs, InfoSaysWhatRan) {
  const auto r = heaptape({"info", tape_});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("sample --once"));
  EXPECT_THAT(r.out, HasSubstr("exited with status 0"));
  const Json j = json({"info"});
  EXPECT_EQ(j["program"], "/usr/bin/sample");
  EXPECT_EQ(j["threads"], 2);
  EXPECT_EQ(j["thread_table"][1]["name"], "breaker");
  EXPECT_EQ(j["end"]["reason"], "exited");
  EXPECT_EQ(j["damage"]["truncated"], false);
}

TEST_F(TapeVerbs, CheckFindsASoundTapeSound) {
  const auto r = heaptape({"check", tape_});
  EXPECT_EQ(r.exit_code, 0) << r.out;
  EXPECT_THAT(r.out, HasSubstr("sample.tape: sound\n"));
  const Json j = json({"check"});
  EXPECT_EQ(j["sound"], true);
  EXPECT_EQ(j["events"], 20);
  EXPECT_EQ(j["contradictions"], 0);
}

TEST_F(TapeVerbs, CheckCountsAMissingReleaseAsExactlyOneContradiction) {
  const std::string tape = (folder_ / "lying.tape").string();
  testing::write_tape(tape, 10, true);
  const auto r = heaptape({"check", tape, "--json"});
  EXPECT_EQ(r.exit_code, 1);
  const Json j = Json::parse(r.out);
  EXPECT_EQ(j["sound"], false);
  EXPECT_EQ(j["contradictions"], 1);
  EXPECT_EQ(j["unknown_frees"], 0);
}

TEST_F(TapeVerbs, CheckOfACutTapeSaysSoAndReadsWhatIsThere) {
  const std::string whole = (folder_ / "long.tape").string();
  const std::string cut = (folder_ / "cut.tape").string();
  testing::write_tape(whole, 200000);
  testing::cut_tape(whole, cut);
  const auto r = heaptape({"check", cut, "--json"});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  const Json j = Json::parse(r.out);
  EXPECT_EQ(j["truncated"], true);
  EXPECT_GT(j["events"], 0);
  EXPECT_LT(j["events"], 400000);
  EXPECT_EQ(j["contradictions"], 0);
  EXPECT_THAT(heaptape({"stats", cut}).out, HasSubstr("! The tape is cut off"));
}

TEST_F(TapeVerbs, StatsPrintsTheTotals) {
  const Json j = json({"stats"});
  EXPECT_EQ(j["events"], 20);
  EXPECT_EQ(j["malloc"], 10);
  EXPECT_EQ(j["free"], 10);
  EXPECT_EQ(j["free_null"], 1);
  EXPECT_EQ(j["threads"], 2);
  EXPECT_EQ(j["total_alloc_bytes"], 1000);
  EXPECT_EQ(j["peak_live_bytes"], 1000);
  EXPECT_EQ(j["peak_event"], 10);
  EXPECT_EQ(j["end_live_bytes"], 100);
  EXPECT_EQ(j["lifetimes"]["released_by_other_thread"], 9);
  const std::string text = heaptape({"stats", tape_}).out;
  EXPECT_THAT(text, HasSubstr("20 calls by 2 threads"));
  EXPECT_THAT(text, HasSubstr("maker"));
}

TEST_F(TapeVerbs, PrintPrintsOneEventALine) {
  const auto all = lines({"print"});
  ASSERT_EQ(all.size(), 20U);
  EXPECT_THAT(all[0], HasSubstr("malloc(100) = #1@0x10000"));
  EXPECT_THAT(all[10], HasSubstr("free(#1@0x10000)  -100 B"));
}

TEST_F(TapeVerbs, PrintTakesARangeAThreadAndALimit) {
  EXPECT_EQ(lines({"print", "--from", "5", "--to", "8"}).size(), 3U);
  EXPECT_EQ(lines({"print", "--thread", "1"}).size(), 10U);
  EXPECT_EQ(lines({"print", "--limit", "4"}).size(), 4U);
  EXPECT_EQ(lines({"print", "--thread", "1", "--from", "12", "--limit", "2"}).size(), 2U);
  EXPECT_EQ(lines({"print", "--from", "100"}).size(), 0U);
}

TEST_F(TapeVerbs, PrintsJsonLinesParseOneByOne) {
  const auto all = lines({"print", "--json"});
  ASSERT_EQ(all.size(), 20U);
  std::uint64_t index = 0;
  for (const std::string& line : all) {
    EXPECT_EQ(Json::parse(line)["index"], index++);
  }
}

TEST_F(TapeVerbs, PrintEndsQuietlyWhenItsReaderLeaves) {
  const std::string tape = (folder_ / "long.tape").string();
  testing::write_tape(tape, 100000);
  for (const char* before : {"", "trap '' PIPE; "}) {
    const auto r = bash(before + ("\"$heaptape\" print '" + tape + "' | head -n 1"));
    EXPECT_THAT(r.err, IsEmpty());
    EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 1);
  }
}

TEST_F(TapeVerbs, ReportWritesOnePageAndNothingBesideIt) {
  const std::string page = (folder_ / "page.html").string();
  const auto r = heaptape({"report", tape_, "-o", page, "-q"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, IsEmpty());
  const std::string html = format::read_file(page);
  EXPECT_THAT(html, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(html, ::testing::EndsWith("</html>\n"));
  EXPECT_THAT(html, HasSubstr("sample"));
  EXPECT_FALSE(std::filesystem::exists(page + ".part"));
  EXPECT_EQ(heaptape({"report", tape_, "-o", "-"}).out, html);
}

TEST_F(TapeVerbs, ReportShowsTheReplayOfARealRun) {
  const std::string result = (folder_ / "result.json").string();
  const std::string page = (folder_ / "page.html").string();
  const auto replayed =
      heaptape({"replay", tape_, "-a", "glibc", "-a", "arena", "--runs", "1", "-q", "-o", result});
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  const auto r = heaptape({"report", tape_, "--replay", result, "-o", page, "-q"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::string html = format::read_file(page);
  EXPECT_THAT(html, HasSubstr(">arena</span></th>"));
  EXPECT_THAT(html, Not(HasSubstr("results are of another tape")));
}

TEST_F(TapeVerbs, ReportThatCannotBeWrittenLeavesTheOldPage) {
  const auto r = heaptape({"report", tape_, "-o", (folder_ / "no/such/page.html").string()});
  EXPECT_EQ(r.exit_code, 4);
  EXPECT_THAT(r.err, HasSubstr("no/such/page.html"));
  format::write_file(folder_ / "old.html", "old");
  format::write_file(folder_ / "none.json", "{}");
  const auto bad = heaptape(
      {"report", tape_, "--replay", (folder_ / "none.json").string(), "-o", (folder_ / "old.html").string()});
  EXPECT_EQ(bad.exit_code, 3) << bad.err;
  EXPECT_EQ(format::read_file(folder_ / "old.html"), "old");
}

TEST_F(TapeVerbs, AFullDiskBehindTheirOutputIsAnErrorOfTheSystem) {
  for (const std::string& verb : reading_verbs) {
    const auto r = bash("\"$heaptape\" " + verb + " '" + tape_ + "' > /dev/full");
    EXPECT_EQ(r.exit_code, 4) << verb;
    EXPECT_THAT(r.err, HasSubstr("standard output")) << verb;
  }
}

TEST_F(TapeVerbs, OnATerminalColoursAreShownUnlessNoColorIsSet) {
  const std::string on_terminal = "script -qec '\"$heaptape\" check " + tape_ + "' /dev/null";
  EXPECT_THAT(bash("unset NO_COLOR; export TERM=xterm; " + on_terminal).out, HasSubstr("\033[32msound"));
  EXPECT_THAT(bash("export NO_COLOR=1 TERM=xterm; " + on_terminal).out, Not(HasSubstr("\033")));
  EXPECT_THAT(bash("unset NO_COLOR; export TERM=dumb; " + on_terminal).out, Not(HasSubstr("\033")));
}

TEST_F(TapeVerbs, OutputThatIsNoTerminalHasNoColours) {
  for (const std::string& verb : reading_verbs) {
    EXPECT_THAT(heaptape({verb, tape_}).out, Not(HasSubstr("\033"))) << verb;
  }
}

}  // namespace
}  // namespace heaptape::cli
