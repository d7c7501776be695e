#include "analyzers/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/render/check_text.h"

namespace heaptape::analyzers {
namespace {

using format::EndReason;
using format::MergeReport;
using format::TapeInfo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TapeInfo whole() {
  TapeInfo info;
  info.footer.reason = EndReason::exited;
  return info;
}

TEST(Check, AWholeTapeWithRepairsIsSound) {
  const Verdict v = judge({.events = 10, .repairs = 4}, whole());
  EXPECT_TRUE(v.sound);
  EXPECT_THAT(v.notes, ElementsAre(HasSubstr("4 event(s)")));
}

TEST(Check, OneContradictionMakesATapeUnsound) {
  const Verdict v = judge({.contradictions = 1}, whole());
  EXPECT_FALSE(v.sound);
  EXPECT_THAT(v.faults, ElementsAre(HasSubstr("1 contradiction")));
}

TEST(Check, WhateverIsMissingMakesATapeUnsound) {
  TapeInfo cut = whole();
  cut.damage.truncated = true;
  EXPECT_FALSE(judge({}, cut).sound);
  TapeInfo holed = whole();
  holed.damage.missing_blocks = 1;
  EXPECT_FALSE(judge({}, holed).sound);
  TapeInfo garbled = whole();
  garbled.damage.bad_blocks = 1;
  EXPECT_FALSE(judge({}, garbled).sound);
  EXPECT_FALSE(judge({.gaps = 1, .lost_events = 5}, whole()).sound);
  TapeInfo lossy = whole();
  lossy.footer.recorder.signal_losses = 1;
  EXPECT_FALSE(judge({}, lossy).sound);
  TapeInfo deaf = whole();
  deaf.footer.recorder.lost_threads = 1;
  EXPECT_FALSE(judge({}, deaf).sound);
  TapeInfo disturbed = whole();
  disturbed.footer.recorder.own_allocations = 1;
  EXPECT_FALSE(judge({}, disturbed).sound);
}

TEST(Check, AnUnknownFreeIsAFaultOnlyWhereEveryBirthWasSeen) {
  const MergeReport merged{.unknown_releases = 2};
  EXPECT_FALSE(judge(merged, whole()).sound);
  TapeInfo attached = whole();
  attached.header.from_start = false;
  EXPECT_TRUE(judge(merged, attached).sound);
  TapeInfo imported = whole();
  imported.header.source = "imported from mtrace";
  EXPECT_TRUE(judge(merged, imported).sound);
}

TEST(Check, AKilledProgramLeavesASoundTapeAndANote) {
  TapeInfo info = whole();
  info.footer.reason = EndReason::killed;
  info.footer.value = 9;
  const Verdict v = judge({.open_reallocs = 1}, info);
  EXPECT_TRUE(v.sound);
  EXPECT_THAT(v.notes, ElementsAre(HasSubstr("signal 9"), HasSubstr("1 realloc")));
}

TEST(Check, TextAndJsonCarryTheSameNamesAndNumbers) {
  const MergeReport merged{.events = 1234,
                           .contradictions = 1,
                           .repairs = 2,
                           .unknown_releases = 3,
                           .open_reallocs = 4,
                           .gaps = 5,
                           .lost_events = 6};
  const TapeInfo info = whole();
  const Verdict v = judge(merged, info);
  const std::string text = check_text("a.tape", v, merged, info, Style(false));
  EXPECT_THAT(text, HasSubstr("a.tape: UNSOUND\n"));
  const Json json = check_json("a.tape", v, merged, info);
  EXPECT_EQ(json["schema"], "heaptape.check/1");
  EXPECT_EQ(json["sound"], false);
  for (const auto& [name, value] : {std::pair{"contradictions", 1},
                                    {"repairs", 2},
                                    {"unknown_frees", 3},
                                    {"open_reallocs", 4},
                                    {"gaps", 5},
                                    {"lost_events", 6}}) {
    EXPECT_EQ(json[name], value) << name;
    EXPECT_THAT(text,
                ::testing::ContainsRegex(std::string("\n  ") + name + " +" + std::to_string(value) + "\n"));
  }
  EXPECT_EQ(json["truncated"], false);
  EXPECT_THAT(text, HasSubstr("truncated"));
}

TEST(Check, ColoursAreWrittenOnlyWhenAskedFor) {
  const Verdict v = judge({}, whole());
  EXPECT_THAT(check_text("a", v, {}, whole(), Style(true)), HasSubstr("\033["));
  EXPECT_THAT(check_text("a", v, {}, whole(), Style(false)), ::testing::Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace heaptape::analyzers
