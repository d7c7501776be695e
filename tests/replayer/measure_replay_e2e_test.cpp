// `heaptape replay` as a user runs it: a small synthetic tape against real allocators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "format/writer.h"
#include "replayer/measure/result.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

struct Ended {
  int code;
  std::string out;
  std::string err;
};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class ReplayEndToEnd : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("heaptape-replay-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Ended heaptape(const std::string& arguments) const {
    const std::string out = (folder_ / "out").native();
    const std::string err = (folder_ / "err").native();
    const int status =
        std::system(fmt::format("{} {} >{} 2>{}", HEAPTAPE_BINARY, arguments, out, err).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(out), content(err)};
  }
  [[nodiscard]] std::string write_tape(const Tape& tape, std::uint32_t threads) const {
    const auto path = folder_ / fmt::format("{}.tape", threads);
    format::TapeHeader header;
    header.form = format::TapeForm::packed;
    header.program = "synthetic";
    auto writer = format::TapeWriter::create(path, header);
    EXPECT_TRUE(writer);
    for (std::uint32_t t = 0; t < threads; ++t) {
      format::ThreadInfo info;
      info.thread = format::ThreadIndex{t};
      EXPECT_TRUE(writer->thread(info));
    }
    EXPECT_TRUE(writer->append(std::span<const format::Event>(tape.events())));
    format::TapeFooter footer;
    footer.reason = format::EndReason::exited;
    EXPECT_TRUE(writer->finish(footer));
    return path.native();
  }
  // Runs a replay that must be fine, and its results by label.
  std::map<std::string, Json> results(const std::string& arguments) {
    const Ended ended = heaptape("replay --json " + arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    const Json json = Json::parse(ended.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << ended.out;
    const auto read = result_from_json(json);
    EXPECT_TRUE(read) << read.error().message();
    std::map<std::string, Json> by_label;
    for (const Json& entry : json["results"]) {
      EXPECT_TRUE(entry["failure"].is_null()) << entry["allocator"] << ": " << entry["failure"];
      EXPECT_TRUE(by_label.emplace(entry["allocator"], entry).second) << "labels must be unique";
    }
    return by_label;
  }
  std::filesystem::path folder_;
};

TEST_F(ReplayEndToEnd, ASerialReplayMeasuresWhatThePlanKnows) {
  const Tape tape = random_tape(21, 60'000, 1, 2'000);
  const std::string path = write_tape(tape, 1);
  const auto r = results(path + " -a glibc -a null -a arena --runs 2");
  ASSERT_EQ(r.size(), 3U);
  for (const auto& [label, entry] : r) {
    EXPECT_EQ(entry["order"], "serial");
    EXPECT_EQ(entry["space_order"], "serial");
    EXPECT_EQ(entry["touch"], "pages");
    EXPECT_EQ(entry["runs"], 2);
    EXPECT_EQ(entry["failed_allocations"], 0);
    EXPECT_EQ(entry["misaligned"], 0);
    EXPECT_EQ(entry["order_digest"], r.at("null")["order_digest"]);
    EXPECT_EQ(entry["space_order_digest"], r.at("null")["space_order_digest"]);
    EXPECT_GT(entry["ns_per_event"]["median"], 0.0);
    EXPECT_EQ(entry["rounds_ns_per_event"].size(), 2U);
    EXPECT_EQ(entry["peak_resident_method"], "smaps");
    EXPECT_EQ(entry["curve"]["requested_bytes"].back(), tape.live_bytes());
  }
  const Json& null = r.at("null");
  EXPECT_EQ(null["peak_resident_bytes"], 0);
  const Json& glibc = r.at("glibc");
  EXPECT_GE(glibc["peak_resident_bytes"], glibc["requested_peak_bytes"]);
  EXPECT_GE(glibc["peak_resident_bytes"], glibc["final_resident_bytes"]);
  EXPECT_GE(glibc["final_resident_bytes"], glibc["after_purge_resident_bytes"]);
  EXPECT_TRUE(glibc["purged"]);
  EXPECT_GT(glibc["page_occupancy"], 0.5);
  EXPECT_LE(glibc["page_occupancy"], 1.0);
}

TEST_F(ReplayEndToEnd, SeveralThreadsRunFreelyForTimeAndInTurnsForSpace) {
  const std::string path = write_tape(random_tape(22, 40'000, 3, 1'000), 3);
  for (const auto& [label, entry] : results(path + " -a glibc -a null --runs 1")) {
    EXPECT_EQ(entry["order"], "deps");
    EXPECT_EQ(entry["space_order"], "total");
  }
}

TEST_F(ReplayEndToEnd, TheSameTapeGivesTheSameDigestsInEveryRun) {
  const std::string path = write_tape(random_tape(23, 40'000, 3, 1'000), 3);
  for (const char* order : {"serial", "total"}) {
    const std::string arguments =
        fmt::format("{} -a glibc -a glibc -a arena --runs 1 --order {}", path, order);
    const auto first = results(arguments);
    const auto second = results(arguments);
    for (const auto& [label, entry] : first) {
      EXPECT_EQ(entry["order"], order);
      EXPECT_TRUE(entry["order_digest"].is_string());
      EXPECT_EQ(entry["order_digest"], second.at(label)["order_digest"]) << label;
      if (entry["addresses_randomised"] == false) {
        EXPECT_TRUE(entry["placement_digest"].is_string());
        EXPECT_EQ(entry["placement_digest"], second.at(label)["placement_digest"]) << label << " " << order;
      }
    }
    EXPECT_EQ(first.at("glibc")["order_digest"], first.at("glibc#2")["order_digest"]);
    EXPECT_NE(first.at("glibc")["placement_digest"], first.at("arena")["placement_digest"]);
  }
}

// Of each block one page is touched: some 12,000 runs of pages with holes between them.
TEST_F(ReplayEndToEnd, CheapReadingsAgreeWithExactOnesOfScatteredPages) {
  Tape tape;
  for (int i = 0; i < 12'000; ++i) {
    tape.allocate(0, 40'000);
  }
  const auto r = results(write_tape(tape, 1) + " -a glibc --runs 1 --touch first");
  const Json& curve = r.at("glibc")["curve"];
  std::size_t compared = 0;
  for (std::size_t i = 1; i < curve["exact"].size(); ++i) {
    if (curve["exact"][i] != curve["exact"][i - 1]) {
      // Each operation touches a page for the block and perhaps one for the heap's own use.
      const auto calls =
          curve["op_index"][i].get<std::int64_t>() - curve["op_index"][i - 1].get<std::int64_t>();
      const auto a = curve["resident_bytes"][i - 1].get<std::int64_t>();
      const auto b = curve["resident_bytes"][i].get<std::int64_t>();
      EXPECT_LE(std::abs(a - b), calls * 2 * 4096) << "at instant " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10U);
}

TEST_F(ReplayEndToEnd, ACandidateThatCrashesIsReportedAndTheOthersGoOn) {
  const std::string path = write_tape(random_tape(24, 5'000, 1, 300), 1);
  const Ended ended =
      heaptape(fmt::format("replay --json {} -a glibc -a crash={},prefix=crash_ -a null --runs 1", path,
                           HEAPTAPE_CRASHING_ALLOCATOR));
  EXPECT_EQ(ended.code, 0) << ended.err;
  const Json json = Json::parse(ended.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_TRUE(json["results"][0]["failure"].is_null());
  EXPECT_THAT(json["results"][1]["failure"].get<std::string>(), HasSubstr("SIGSEGV"));
  EXPECT_TRUE(json["results"][2]["failure"].is_null());
  const Ended alone = heaptape(
      fmt::format("replay {} -a crash={},prefix=crash_ --runs 1", path, HEAPTAPE_CRASHING_ALLOCATOR));
  EXPECT_EQ(alone.code, 1) << "nothing could be measured";
}

TEST_F(ReplayEndToEnd, AnArenaThatIsTooSmallSaysSoAndIsNotCompared) {
  const std::string path = write_tape(random_tape(25, 20'000, 1, 2'000), 1);
  const auto r = results(path + " -a glibc -a arena:size=1M --runs 3");
  EXPECT_GT(r.at("arena:size=1M")["failed_allocations"], 0);
  const Ended text = heaptape("replay " + path + " -a glibc -a arena:size=1M --runs 3");
  EXPECT_THAT(text.out, HasSubstr("allocations failed"));
}

TEST_F(ReplayEndToEnd, TheTextIsATableWithAVerdictAndTheFileHoldsTheJson) {
  const std::string path = write_tape(random_tape(26, 20'000, 1, 500), 1);
  const std::string file = (folder_ / "result.json").native();
  const Ended ended = heaptape(fmt::format("replay {} -a glibc -a arena --runs 3 -o {}", path, file));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("order serial"));
  EXPECT_THAT(ended.out, HasSubstr("arena"));
  EXPECT_THAT(ended.out, HasSubstr("glibc"));
  EXPECT_EQ(ended.err, "");
  EXPECT_TRUE(load_replay_result(file));
}

TEST_F(ReplayEndToEnd, EveryErrorHasItsExitCodeAndOneLine) {
  const std::string path = write_tape(random_tape(27, 1'000, 1, 50), 1);
  const auto expect = [&](const std::string& arguments, int code, const std::string& part) {
    const Ended ended = heaptape("replay " + arguments);
    EXPECT_EQ(ended.code, code) << arguments;
    EXPECT_THAT(ended.err, HasSubstr(part)) << arguments;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_EQ(ended.out, "");
  };
  expect("/nonexistent.tape", 3, "/nonexistent.tape");
  expect("/dev/null", 3, "/dev/null");
  expect("", 2, "TAPE");
  expect(path + " -a nosuch", 2, "nosuch");
  expect(path + " -a glibc --order sideways", 2, "sideways");
  expect(path + " -a glibc --runs 0", 2, "runs");
  expect(path + " -a glibc --baseline jemalloc", 2, "--baseline");
  expect(path + " -a glibc --timeout soon", 2, "--timeout");
}

TEST_F(ReplayEndToEnd, TheListShowsWhatRunsHere) {
  const Ended ended = heaptape("replay --list --json");
  EXPECT_EQ(ended.code, 0) << ended.err;
  const Json json = Json::parse(ended.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  std::set<std::string> names;
  for (const Json& c : json["candidates"]) {
    names.insert(c["allocator"]);
    EXPECT_TRUE(c["failure"].is_null()) << c.dump();
    EXPECT_EQ(c["installed"].get<bool>(), c["package"].is_null());
  }
  for (const char* name :
       {"glibc", "mimalloc", "jemalloc", "tcmalloc", "tbbmalloc", "scudo", "arena", "null"}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
}

}  // namespace
}  // namespace heaptape::replayer
