// The HTML page: whole, self-contained, and deaf to what a tape or a result tries to smuggle in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analyzers/render/html/html.h"
#include "analyzers/render/html/report_page.h"
#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers {
namespace {

using format::TapeInfo;
using replayer::CandidateResult;
using replayer::ReplayResult;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* best = "<strong title=\"lowest of those compared\"><data value=\"";
constexpr const char* poison = "</script><img src=x onerror=alert(1)>\"'&<!--";

TapeInfo some_info() {
  TapeInfo info;
  info.header.program = "/usr/bin/sample";
  info.header.arguments = {"sample", "--fast"};
  info.header.allocator = "/lib/libc.so.6";
  info.footer.reason = format::EndReason::exited;
  info.footer.duration_ns = 20'000'000;
  info.resident = {{.time_ns = 0, .resident_bytes = 9000, .anonymous_bytes = 5000},
                   {.time_ns = 15'000'000, .resident_bytes = 19000, .anonymous_bytes = 15000}};
  info.events = 6000;
  return info;
}

CandidateResult candidate(const std::string& name, double net_ns, std::uint64_t peak) {
  CandidateResult c;
  c.allocator = name;
  c.order = "deps";
  c.space_order = "total";
  c.touch = "pages";
  c.huge_pages = "never";
  c.runs = 5;
  c.time.net_ns_per_event = {net_ns, net_ns - 1, net_ns + 1};
  c.space.peak_resident_bytes = peak;
  c.space.final_resident_bytes = peak / 2;
  c.space.after_purge_resident_bytes = peak / 4;
  c.space.purged = name != "arena";
  c.space.page_occupancy = 0.75;
  c.space.resident.at_own_peak.value = 1.25;
  for (std::uint64_t at = 0; at < 5; ++at) {
    c.space.curve.push_back({.event_index = at * 1000,
                             .time_ns = static_cast<std::int64_t>(at) * 1'000'000,
                             .requested_bytes = at * 100,
                             .live_page_bytes = at * 150,
                             .resident_bytes = at * 200,
                             .committed_bytes = at * 300});
  }
  return c;
}

ReplayResult some_replay() {
  ReplayResult r;
  r.tape.path = "t.tape";
  r.tape.events = 6000;
  r.tape.calls = 5900;
  r.tape.requested_peak_bytes = 1 << 20;
  r.baseline = "glibc";
  r.null_ns_per_event = {3, 2, 4};
  r.results = {candidate("glibc", 50, 4 << 20), candidate("quick", 25, 5 << 20),
               candidate("arena", 49, 3 << 20)};
  r.verdicts = {
      {"quick", "glibc", replayer::Estimate{2, 1.9, 2.1}, true, "quick is 2.00x faster than glibc"},
      {"arena", "glibc", replayer::Estimate{1.02, 0.9, 1.1}, false, "arena: no significant difference"}};
  return r;
}

std::string page_of(const TapeInfo& info, const ReplayResult* replay, std::vector<format::Event> events) {
  format::VectorCursor cursor(std::move(events));
  const auto stats = std::make_unique<StatsAnalysis>();
  EXPECT_TRUE(run(cursor, {stats.get()}));
  return report_page({.tape = "t.tape", .info = info, .stats = stats->result(), .replay = replay});
}
std::string page_of(const TapeInfo& info, const ReplayResult* replay = nullptr) {
  return page_of(info, replay, testing::random_events(5, 6000));
}

// Markup alone: what is inside <style> and <script> is left out.
std::string markup(const std::string& page) {
  std::string out;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t script = page.find("<script", at);
    const std::size_t style = page.find("<style", at);
    const std::size_t begin = std::min(script, style);
    if (begin == std::string::npos) {
      return out + page.substr(at);
    }
    const std::string close = begin == script ? "</script>" : "</style>";
    out += page.substr(at, begin - at);
    at = page.find(close, begin);
    if (at == std::string::npos) {
      ADD_FAILURE() << "no " << close;
      return out;
    }
    at += close.size();
  }
  return out;
}

// What follows every `prefix`, up to the next quotation mark. (std::regex does not compile without
// warnings under GCC's sanitizers.)
std::multiset<std::string> values_after(const std::string& text, const std::string& prefix) {
  std::multiset<std::string> found;
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    at += prefix.size();
    found.insert(text.substr(at, text.find('"', at) - at));
  }
  return found;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

Json chart_data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"chart-data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

// Every < begins a tag, > ends it, and every element ends where it must.
void expect_well_formed(const std::string& page) {
  const std::string text = markup(page);
  const std::set<std::string> without_end = {"meta", "link", "br", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const std::size_t end = text.find_first_of("<>", at + 1);
    ASSERT_TRUE(end != std::string::npos && text[end] == '>') << text.substr(at, 60);
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find(' '));
    if (!name.starts_with('/')) {
      if (!without_end.contains(name)) {
        open.push_back(name);
      }
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ("/" + open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(Report, IsWellFormedWithAndWithoutAReplayAndForAnEmptyTape) {
  const ReplayResult replay = some_replay();
  expect_well_formed(page_of(some_info()));
  expect_well_formed(page_of(some_info(), &replay));
  expect_well_formed(page_of(TapeInfo{}, nullptr, {}));
}

TEST(Report, LoadsNothingFromAnywhere) {
  const ReplayResult replay = some_replay();
  const std::string page = page_of(some_info(), &replay);
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"));
  const std::string text = markup(page);
  EXPECT_THAT(text, Not(HasSubstr("http:")));
  EXPECT_THAT(text, Not(HasSubstr("https:")));
  EXPECT_THAT(text, Not(HasSubstr(" src=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  for (const std::string& target : values_after(text, "href=\"")) {
    EXPECT_TRUE(target.starts_with("#") || target == "data:,") << target;
  }
}

TEST(Report, EveryLinkHasItsTargetAndEveryIdIsThereOnce) {
  const ReplayResult replay = some_replay();
  const std::string text = markup(page_of(some_info(), &replay));
  const auto ids = values_after(text, " id=\"");
  for (const std::string& id : ids) {
    EXPECT_EQ(ids.count(id), 1U) << id;
  }
  for (const std::string& target : values_after(text, "href=\"#")) {
    EXPECT_TRUE(ids.contains(target)) << target;
  }
}

TEST(Report, StringsOfTapeAndResultCannotBecomeMarkup) {
  TapeInfo info = some_info();
  info.header.program = std::string("/bin/") + poison;
  info.header.arguments = {poison, poison};
  info.header.allocator = poison;
  info.header.cpu_model = poison;
  info.header.host_kernel = poison;
  info.header.source = poison;
  info.threads = {
      {.thread = format::ThreadIndex{0}, .tid = 1, .start_tick = 0, .end_tick = 0, .name = poison}};
  info.damage.notes = {poison};
  info.damage.bad_blocks = 1;
  ReplayResult replay = some_replay();
  replay.cpu_model = poison;
  replay.tape.path = poison;
  replay.tape.events = 1;  // so that the path is shown
  replay.results[0].allocator = poison;
  replay.results[0].version = poison;
  replay.results[0].touch = poison;
  replay.results[1].failure = poison;
  replay.verdicts[0].text = poison;
  const std::string page = page_of(info, &replay);
  expect_well_formed(page);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  EXPECT_EQ(chart_data_of(page)["candidates"][0]["label"], poison);
}

TEST(Report, SaysTheOverviewInWordsBeforeAnyTable) {
  const ReplayResult replay = some_replay();
  const std::string page = page_of(some_info(), &replay);
  const std::size_t table = page.find("<table");
  for (const char* words : {"allocator <a", "quick is 2.00x faster than glibc",
                            "Least memory at the peak: arena with 3.00 MiB"}) {
    EXPECT_LT(page.find(words), table) << words;
  }
}

TEST(Report, TheTableOfAllocatorsMarksTheBestAndTellsWhatIsNotSignificant) {
  const ReplayResult replay = some_replay();
  const std::string page = page_of(some_info(), &replay);
  EXPECT_THAT(values_after(page, best), ElementsAre("25", std::to_string(3 << 20)));
  EXPECT_EQ(count_of(page, ">n.s.</a>"), 1U);
  EXPECT_THAT(page, HasSubstr("no purge call"));
  EXPECT_THAT(page, HasSubstr("125.0 %"));
}

TEST(Report, ACandidateThatFailedIsNamedWithItsReasonAndNeverBest) {
  ReplayResult replay = some_replay();
  replay.results[1] = CandidateResult{};
  replay.results[1].allocator = "quick";
  replay.results[1].failure = "crashed in malloc (signal 11)";
  const std::string page = page_of(some_info(), &replay);
  EXPECT_THAT(page, HasSubstr("quick is not compared: crashed in malloc (signal 11)."));
  EXPECT_THAT(values_after(page, best), Not(Contains("0")));
}

TEST(Report, ResultsOfAnotherTapeAreCalledSo) {
  ReplayResult replay = some_replay();
  EXPECT_THAT(page_of(some_info(), &replay), Not(HasSubstr("results are of another tape")));
  replay.tape.events = 17;
  EXPECT_THAT(page_of(some_info(), &replay), HasSubstr("results are of another tape"));
}

TEST(Report, ChartsGetTheCurvesOfProgramAndCandidatesOnBothAxes) {
  const ReplayResult replay = some_replay();
  const Json data = chart_data_of(page_of(some_info(), &replay));
  EXPECT_EQ(data["has_time"], true);
  for (const char* axis : {"by_time", "by_event"}) {
    EXPECT_FALSE(data[axis]["live"].empty());
    EXPECT_EQ(data[axis]["live"].size(), data[axis]["time"].size());
    EXPECT_EQ(data[axis]["live"].size(), data[axis]["event"].size());
  }
  EXPECT_EQ(data["program"]["anonymous"], Json({5000, 15000}));
  EXPECT_EQ(data["program"]["event"][0], 0);
  EXPECT_GT(data["program"]["event"][1], 5000);  // near the end of the calls
  ASSERT_EQ(data["candidates"].size(), 3U);
  EXPECT_EQ(data["candidates"][1]["label"], "quick");
  EXPECT_EQ(data["candidates"][1]["resident"], Json({0, 200, 400, 600, 800}));
}

TEST(Report, TablesHaveCaptionsAndHeadersForScreenReaders) {
  const ReplayResult replay = some_replay();
  const std::string text = markup(page_of(some_info(), &replay));
  EXPECT_GT(count_of(text, "<table"), 5U);
  EXPECT_EQ(count_of(text, "<table><caption>"), count_of(text, "<table"));
  EXPECT_EQ(count_of(text, "<caption></caption>"), 0U);
  EXPECT_EQ(count_of(text, "<th scope="), count_of(text, "<th "));
  EXPECT_EQ(count_of(text, "role=\"img\" aria-label=\""), count_of(text, "role=\"img\""));
  EXPECT_EQ(count_of(text, "aria-label=\"\""), 0U);
}

TEST(Html, EscapesWhatHtmlReads) {
  EXPECT_EQ(escaped("a<b>&\"'\x01\n"), "a&lt;b&gt;&amp;&quot;&#39;\n");
  EXPECT_EQ(script_json(Json{{"x", "</script>"}}), "{\"x\":\"\\u003c/script>\"}");
}

TEST(Html, EveryTermThatIsUsedIsDefined) {
  std::set<std::string_view> ids;
  for (const Definition& d : glossary()) {
    EXPECT_TRUE(ids.insert(d.id).second) << d.id;
    EXPECT_FALSE(d.text.empty());
  }
}

}  // namespace
}  // namespace heaptape::analyzers
