#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "recorder/collector/tape_names.h"

namespace heaptape::collector {
namespace {

TapeNames names(std::string_view pattern) { return TapeNames::parse(pattern, 1'700'000'000).value(); }

TEST(TapeNames, PlainNameExpandsProcessProgramAndTime) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(names("heaptape.%e.%p.tape").plain(17, "redis-server"), "heaptape.redis-server.17.tape");
  EXPECT_EQ(names("%t.tape").plain(17, "x"), "20231114-221320.tape");
  EXPECT_EQ(names("100%%.tape").plain(17, "x"), "100%.tape");
}

TEST(TapeNames, OtherProcessesGetTheirNumberBeforeTheExtensionUnlessThePatternHasIt) {
  EXPECT_EQ(names("out/run.tape").other(17, "x"), "out/run.17.tape");
  EXPECT_EQ(names("run").other(17, "x"), "run.17");
  EXPECT_EQ(names("out.d/run").other(17, "x"), "out.d/run.17");
  EXPECT_EQ(names("%p.tape").other(17, "x"), "17.tape");
}

TEST(TapeNames, AnUnknownLetterAfterPercentIsAUsageErrorThatNamesTheKnownOnes) {
  for (const char* bad : {"%q.tape", "x%", "", "folder/"}) {
    const auto result = TapeNames::parse(bad, 0);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code(), format::ExitCode::usage) << bad;
  }
  EXPECT_THAT(TapeNames::parse("%q", 0).error().message(), testing::HasSubstr("p (process id)"));
}

TEST(TapeNames, AProgramNameCannotLeaveTheFolder) {
  EXPECT_EQ(names("d/%e.tape").plain(1, "../../etc/x\n"), "d/.._.._etc_x_.tape");
  EXPECT_EQ(names("%e.tape").plain(1, ""), "unknown.tape");
}

TEST(TapeNames, NoTwoImagesOfOneRecordingShareAName) {
  TapeNames n = names("run.tape");
  const auto first = n.untaken(n.other(17, "x"));
  n.take(first, 17);
  const auto reused_pid = n.untaken(n.other(17, "x"));
  n.take(reused_pid, 17);
  EXPECT_EQ(first, "run.17.tape");
  EXPECT_EQ(reused_pid, "run.17.2.tape");
  EXPECT_EQ(n.untaken(n.other(17, "x")), "run.17.3.tape");
  n.release(reused_pid);
  EXPECT_EQ(n.untaken(n.other(17, "x")), "run.17.2.tape");
}

TEST(TapeNames, ImagesReplacedByExecAreNumberedInOrder) {
  TapeNames n = names("run.tape");
  n.take(n.plain(17, "sh"), 17);
  EXPECT_EQ(n.holder("run.tape"), 17);
  const auto first = n.replaced("run.tape");
  n.take(first, 17);
  EXPECT_EQ(first, "run.replaced-1.tape");
  EXPECT_EQ(n.replaced("run.tape"), "run.replaced-2.tape");
}

}  // namespace
}  // namespace heaptape::collector
