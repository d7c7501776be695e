// Results: JSON there and back, verdicts, the text.
#include "replayer/measure/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "replayer/measure/table.h"
#include "replayer/measure/verdict.h"

namespace heaptape::replayer {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

CandidateResult candidate(const std::string& label, std::vector<double> net_rounds) {
  CandidateResult c;
  c.allocator = label;
  c.order = "deps";
  c.space_order = "total";
  c.touch = "pages";
  c.huge_pages = "never";
  c.runs = static_cast<std::uint32_t>(net_rounds.size());
  for (const double net : net_rounds) {
    c.time.rounds.push_back(net + 3);
  }
  c.time.net_rounds = std::move(net_rounds);
  c.time.ns_per_event = estimate_median(c.time.rounds);
  c.time.net_ns_per_event = estimate_median(c.time.net_rounds);
  c.time.order_digest = "0123456789abcdef";
  c.space.requested_peak_bytes = 1 << 20;
  c.space.peak_resident_bytes = 2 << 20;
  c.space.peak_resident_method = "smaps";
  c.space.curve = {
      {.op_index = 1, .event_index = 2, .time_ns = -3, .requested_bytes = 4, .resident_bytes = 5},
      {.op_index = 9, .requested_bytes = ~std::uint64_t{0}, .exact = true}};
  return c;
}

ReplayResult sample() {
  ReplayResult r;
  r.heaptape_version = "0.1.0";
  r.tape.path = "x.tape";
  r.tape.calls = 1234;
  r.tape.threads = 2;
  r.tape.requested_peak_bytes = 1 << 20;
  r.baseline = "glibc";
  r.results = {candidate("glibc", {20, 21, 19, 20, 20}), candidate("mimalloc", {10, 10, 10, 11, 9}),
               candidate("glibc#2", {20, 20, 21, 19, 20}), candidate("arena", {5, 5, 5, 5, 5}),
               candidate("broken", {})};
  r.results[3].failed_allocations = 12;
  r.results[4] = {};
  r.results[4].allocator = "broken";
  r.results[4].failure = "crashed with SIGSEGV";
  r.verdicts = judge(r);
  return r;
}

TEST(ReplayResultJson, ReadsBackWhatItWrote) {
  const ReplayResult r = sample();
  const auto back = result_from_json(Json::parse(to_json(r).dump()));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, r);
}

TEST(ReplayResultJson, HasTheNamesThatTheCommandLinePromises) {
  const Json json = to_json(sample());
  EXPECT_EQ(json["schema"], "heaptape.replay/1");
  const Json& entry = json["results"][0];
  for (const char* name :
       {"allocator", "order", "touch", "runs", "ns_per_event", "net_ns_per_event", "peak_resident_bytes",
        "final_resident_bytes", "requested_peak_bytes", "fragmentation", "order_digest", "placement_digest",
        "waits", "failed_allocations"}) {
    EXPECT_TRUE(entry.contains(name)) << name;
  }
  for (const char* name : {"median", "low", "high"}) {
    EXPECT_TRUE(entry["net_ns_per_event"].contains(name));
  }
  for (const char* of : {"resident", "live_pages"}) {
    for (const char* name :
         {"mean_over_run", "at_requested_peak", "at_own_peak", "own_peak_over_requested_peak"}) {
      EXPECT_TRUE(entry["fragmentation"][of].contains(name)) << of << name;
    }
  }
  EXPECT_TRUE(entry["placement_digest"].is_null());
  EXPECT_EQ(json["results"][4]["failure"], "crashed with SIGSEGV");
  EXPECT_FALSE(json["results"][4].contains("ns_per_event"));
}

TEST(ReplayResultJson, WhateverIsWrongIsNamed) {
  const Json good = to_json(sample());
  const auto complaint = [](const Json& json) {
    const auto r = result_from_json(json);
    return r ? std::string("accepted") : r.error().message();
  };
  Json json = good;
  json["results"][1]["net_ns_per_event"].erase("low");
  EXPECT_THAT(complaint(json), HasSubstr("results: net_ns_per_event: low: missing"));
  json = good;
  json["results"][1]["waits"] = -1;
  EXPECT_THAT(complaint(json), HasSubstr("waits"));
  json = good;
  json["results"][0]["curve"]["resident_bytes"].erase(0);
  EXPECT_THAT(complaint(json), HasSubstr("resident_bytes is not a list as long as the others"));
  json = good;
  json["schema"] = "heaptape.stats/1";
  EXPECT_THAT(complaint(json), HasSubstr("heaptape.stats/1"));
  EXPECT_THAT(complaint(Json::array()), HasSubstr("not an object"));
  EXPECT_THAT(complaint(Json(3)), HasSubstr("not an object"));
}

TEST(ReplayResultJson, LoadsAFileAndSaysWhichOneIsBad) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("heaptape-result-{}.json", ::getpid());
  std::ofstream(path) << to_json(sample()).dump();
  EXPECT_TRUE(load_replay_result(path));
  std::ofstream(path) << "{";
  const auto bad = load_replay_result(path);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message(), HasSubstr(path.native()));
  std::filesystem::remove(path);
  EXPECT_FALSE(load_replay_result(path));
}

TEST(Verdict, SaysWhoIsFasterByHowMuchAndHowSurely) {
  const ReplayResult r = sample();
  ASSERT_EQ(r.verdicts.size(), 4U);
  EXPECT_EQ(r.verdicts[0].text, "mimalloc is 2.00x faster than glibc (1.82 to 2.22)");
  EXPECT_TRUE(r.verdicts[0].significant);
  EXPECT_EQ(compare_speed(r.results[0], r.results[1]).text,
            "glibc is 2.00x slower than mimalloc (1.82 to 2.22)");
}

TEST(Verdict, NoSignificantDifferenceIsAVerdict) {
  const Verdict v = sample().verdicts[1];
  EXPECT_THAT(v.text, HasSubstr("glibc#2: no significant difference from glibc"));
  EXPECT_FALSE(v.significant);
  ASSERT_TRUE(v.speed);
  EXPECT_LE(v.speed->low, 1.0);
  EXPECT_GE(v.speed->high, 1.0);
}

TEST(Verdict, RefusesWhatCannotBeCompared) {
  const ReplayResult r = sample();
  EXPECT_THAT(r.verdicts[2].text, HasSubstr("12 allocations failed"));
  EXPECT_FALSE(r.verdicts[2].speed);
  EXPECT_THAT(r.verdicts[3].text, HasSubstr("SIGSEGV"));
  const Verdict at_harness = compare_speed(candidate("null", {0.1, -0.1, 0, 0.2, 0}), r.results[0]);
  EXPECT_THAT(at_harness.text, HasSubstr("too close to the harness"));
  EXPECT_FALSE(at_harness.speed);
  const Verdict two = compare_speed(candidate("a", {10, 10}), candidate("b", {20, 20}));
  EXPECT_FALSE(two.significant);
  EXPECT_THAT(two.text, HasSubstr("too few runs"));
}

TEST(ReplayText, MarksTheBestThatDidAllTheWork) {
  const std::string text = replay_text(sample());
  EXPECT_THAT(text, HasSubstr("10.0*"));
  EXPECT_THAT(text, Not(HasSubstr("5.0*")));  // the arena failed allocations
  EXPECT_THAT(text, HasSubstr("order deps"));
  EXPECT_THAT(text, HasSubstr("order total"));
  EXPECT_THAT(text, HasSubstr("mimalloc is 2.00x faster than glibc"));
  EXPECT_THAT(text, HasSubstr("failed"));
}

TEST(ReplayText, ColumnsAreAligned) {
  EXPECT_EQ(align_columns({{"a", "1"}, {"longer", "200", "x"}}), "a         1\nlonger  200  x\n");
}

}  // namespace
}  // namespace heaptape::replayer
