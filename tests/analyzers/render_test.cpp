#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "analyzers/render/event_line.h"
#include "analyzers/render/stats_text.h"
#include "analyzers/render/table.h"
#include "analyzers/render/tape_words.h"
#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers {
namespace {

using format::EventFlag;
using format::Kind;
using format::ObjectId;
using format::TapeInfo;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Scenario;

std::string line_of(const format::Event& e) {
  std::string out;
  append_event_text(out, e);
  return out;
}

TEST(EventLine, ShowsTheCallItsResultAndItsFacts) {
  Scenario s;
  const auto a = s.after(1500).acquire(24, Kind::aligned_alloc, 64);
  const auto b = s.on_thread(3).resize(a, 48, true);
  s.release(b);
  s.release_null();
  s.release_unknown(Kind::operator_delete);
  s.fail(99);
  s.resize_unfinished(b, 7);
  const auto& e = s.events();
  EXPECT_EQ(line_of(e[0]), "        0    0.000001500 t0   aligned_alloc(24, align 64) = #1@0x1000\n");
  EXPECT_EQ(line_of(e[1]),
            "        1    0.000001500 t3   realloc(#1@0x1000, 48) = #2@0x1000  -24 B  in_place\n");
  EXPECT_EQ(line_of(e[2]), "        2    0.000001500 t3   free(#2@0x2000)  -48 B\n");
  EXPECT_THAT(line_of(e[3]), HasSubstr("free(NULL)  null_argument\n"));
  EXPECT_THAT(line_of(e[4]), HasSubstr("operator delete(unknown@0xdead0)  unknown_release\n"));
  EXPECT_THAT(line_of(e[5]), HasSubstr("malloc(99) = NULL  failed\n"));
  EXPECT_THAT(line_of(e[6]), HasSubstr(" = ?  unfinished\n"));
}

TEST(EventLine, JsonLinesParseAndNameWhatIsThere) {
  for (const format::Event& e : testing::random_events(3, 500)) {
    std::string line;
    append_event_json(line, e);
    ASSERT_EQ(line.back(), '\n');
    const Json json = Json::parse(line);
    EXPECT_EQ(json["index"], e.index);
    EXPECT_EQ(json["kind"], kind_key(e.kind));
    EXPECT_EQ(json.contains("object"), e.object != ObjectId::none);
    EXPECT_EQ(json.value("released_size_bytes", std::uint64_t{0}), e.released_size_bytes);
    const auto flags = json["flags"].get<std::vector<std::string>>();
    EXPECT_EQ(std::count(flags.begin(), flags.end(), "implied"), e.has(EventFlag::implied) ? 1 : 0);
  }
}

TEST(TextTable, AlignsColumnsByTheirWidestCell) {
  TextTable table({{"name", Align::left}, {"n"}});
  table.row({"a", "1"});
  table.row({"long", "1000"});
  table.row({"é", "22"});
  EXPECT_EQ(table.text(), "  name     n\n  a        1\n  long  1000\n  é       22\n");
}

TEST(TextTable, ControlCharactersCannotReachTheTerminal) {
  TextTable table({{""}});
  table.row({"x\033[31m\n\xC2\x9Bz"});
  EXPECT_EQ(table.text(), "  x?[31m??z\n");
}

TEST(TextTable, ABarShowsSomethingForSomethingAndNothingForNothing) {
  EXPECT_EQ(bar(0, 10), "");
  EXPECT_EQ(bar(0.001, 10), "#");
  EXPECT_EQ(bar(0.5, 10), "#####");
  EXPECT_EQ(bar(7, 10), "##########");
}

TEST(TextTable, NamesRangesOfSizes) {
  EXPECT_EQ(size_range(5, 5), "5");
  EXPECT_EQ(size_range(16, 31), "16 to 31");
  EXPECT_EQ(size_range(1024, 2047), "1 KiB to < 2 KiB");
  EXPECT_EQ(size_range(512 * 1024, 1024 * 1024 - 1), "512 KiB to < 1 MiB");
  EXPECT_EQ(size_range(17408, 17919), "17.0 KiB to 17.5 KiB");
  EXPECT_EQ(size_range(std::uint64_t{1} << 63, ~std::uint64_t{0}), "8 EiB and more");
}

TEST(TapeWords, AProgramGoesByTheNameItWasStartedBy) {
  format::TapeHeader header;
  header.program = "/usr/bin/redis-check-rdb";
  EXPECT_EQ(program_name(header), "redis-check-rdb");
  header.arguments = {"/usr/bin/redis-server", "--save", "", "a b"};
  EXPECT_EQ(command_line(header), "redis-server --save '' 'a b'");
}

TEST(TapeWords, ALongCommandLineIsCutAndNeverInsideACharacter) {
  format::TapeHeader header;
  header.program = "/usr/bin/prog";
  header.arguments = {"prog", "--x", std::string(150, 'a')};
  EXPECT_EQ(command_line(header).size(), 103U);
  EXPECT_THAT(command_line(header), ::testing::StartsWith("prog --x aaa"));
  header.arguments = {"prog", "ä" + std::string(400, 'b')};
  EXPECT_EQ(command_line(header, 6), "prog ...");
}

TEST(TapeWords, InfoOfATapeWithoutFactsSaysUnknownAndDoesNotInvent) {
  const std::string text = info_text("t.tape", TapeInfo{});
  EXPECT_THAT(text, HasSubstr("unknown program"));
  EXPECT_THAT(text, HasSubstr("unknown: the tape has no end"));
  EXPECT_THAT(text, HasSubstr("damage      none"));
}

TEST(TapeWords, JsonOfNamesThatAreNotUtf8IsStillJson) {
  TapeInfo info;
  info.header.program = "/bin/\xFF\xFE";
  info.header.arguments = {"\x80"};
  const Json json = Json::parse(dump(info_json("t\xFF.tape", info)));
  EXPECT_EQ(json["schema"], "heaptape.info/1");
  EXPECT_EQ(json["arguments"].size(), 1U);
}

struct Rendered {
  std::string text;
  Json json;
};

Rendered render(std::vector<format::Event> events, const TapeInfo& info, std::size_t top = 10) {
  format::VectorCursor cursor(std::move(events));
  const auto stats = std::make_unique<StatsAnalysis>();
  EXPECT_TRUE(run(cursor, {stats.get()}));
  return {stats_text("t.tape", stats->result(), info, {.top = top}),
          Json::parse(dump(stats_json("t.tape", stats->result(), info)))};
}

TEST(StatsText, OfAnEmptyTapeSaysSo) { EXPECT_THAT(render({}, {}).text, HasSubstr("no allocator calls")); }

TEST(StatsText, ShowsTotalsWithUnitsAndRowsUpToTop) {
  Scenario s;
  for (std::uint64_t size = 1; size <= 20; ++size) {
    s.after(1'000'000).acquire(size * 1000);
  }
  const std::string text = render(s.events(), {}, 3).text;
  EXPECT_THAT(text, HasSubstr("20 calls by 1 thread in 20 ms"));
  EXPECT_THAT(text, HasSubstr("205 KiB  20 blocks, at call 20, 20 ms"));
  EXPECT_THAT(text, HasSubstr("Sizes that ask for most bytes (3 of "));
  EXPECT_THAT(text, HasSubstr("Live bytes over time"));
}

TEST(StatsText, WithoutTimeTheCurveIsOverCalls) {
  Scenario s;
  s.acquire(10);
  s.acquire(10);
  TapeInfo info;
  info.header.clock = format::ClockSource::none;
  const std::string text = render(s.events(), info).text;
  EXPECT_THAT(text, HasSubstr("Live bytes over calls"));
  EXPECT_THAT(text, Not(HasSubstr("age in time")));
}

TEST(StatsText, AnomaliesComeFirstAndInWords) {
  Scenario s;
  s.fail(1U << 30U);
  s.release_unknown();
  TapeInfo info;
  info.damage.truncated = true;
  const std::string text = render(s.events(), info).text;
  EXPECT_THAT(text, HasSubstr("! The tape is cut off"));
  EXPECT_THAT(text, HasSubstr("! 1 call failed (null result); the largest asked for 1.00 GiB."));
  EXPECT_THAT(text, HasSubstr("although it begins with the program"));
  EXPECT_LT(text.find("cut off"), text.find("Calls"));
}

TEST(StatsJson, TotalsAreAtTheTopUnderTheirPublicNames) {
  Scenario s;
  const auto a = s.acquire(10);
  s.resize(a, 30);
  s.release_null();
  s.acquire(0, Kind::posix_memalign, 16);
  const Json json = render(s.events(), {}).json;
  EXPECT_EQ(json["schema"], "heaptape.stats/1");
  for (const auto& [name, value] : {std::pair{"events", 4},
                                    {"malloc", 1},
                                    {"calloc", 0},
                                    {"realloc", 1},
                                    {"free", 1},
                                    {"free_null", 1},
                                    {"posix_memalign", 1},
                                    {"threads", 1},
                                    {"total_alloc_bytes", 40},
                                    {"largest_request", 30},
                                    {"peak_live_bytes", 30},
                                    {"peak_event", 2},
                                    {"peak_live_objects", 2},
                                    {"end_live_objects", 2},
                                    {"end_live_bytes", 30},
                                    {"zero_size_allocs", 1},
                                    {"operator_new_array", 0}}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_EQ(json[name], value) << name;
  }
  EXPECT_EQ(json["live_curve"]["by_event"]["live_bytes"].back(), 30);
}

}  // namespace
}  // namespace heaptape::analyzers
