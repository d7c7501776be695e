#include "analyzers/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers {
namespace {

using format::Event;
using format::ExitCode;
using format::MergeReport;
using testing::Scenario;

class Recorder final : public Analysis {
 public:
  void consume(std::span<const Event> events) override {
    for (const Event& e : events) {
      indices.push_back(e.index);
    }
    longest = std::max(longest, events.size());
  }
  void finish(const MergeReport& merged) override {
    ++finished;
    repairs = merged.repairs;
  }
  std::vector<std::uint64_t> indices;
  std::size_t longest = 0;
  int finished = 0;
  std::uint64_t repairs = 0;
};

TEST(Run, HandsEveryEventOnceInOrderToEveryAnalysis) {
  const auto events = testing::random_events(1, 5000);
  format::VectorCursor cursor(events, MergeReport{.repairs = 3});
  Recorder a;
  Recorder b;
  double latest = -1;
  ASSERT_TRUE(run(cursor, {&a, &b}, [&](double share) { latest = share; }));
  ASSERT_EQ(a.indices.size(), events.size());
  for (std::size_t at = 0; at < events.size(); ++at) {
    ASSERT_EQ(a.indices[at], at);
  }
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_LT(a.longest, events.size());  // handed out in pieces
  EXPECT_EQ(a.finished, 1);
  EXPECT_EQ(a.repairs, 3U);
  EXPECT_GE(latest, 0.0);
}

class BrokenCursor final : public format::EventCursor {
 public:
  format::Result<std::span<const Event>> next() override {
    if (std::exchange(broken_, true)) {
      return format::failure(ExitCode::bad_tape, "block 7: wrong checksum");
    }
    return std::span<const Event>(events_);
  }
  [[nodiscard]] const MergeReport& report() const noexcept override { return report_; }
  [[nodiscard]] std::uint32_t slots() const noexcept override { return 0; }

 private:
  std::vector<Event> events_ = std::vector<Event>(2);
  MergeReport report_;
  bool broken_ = false;
};

TEST(Run, ReturnsTheErrorOfTheCursorAndFinishesNothing) {
  BrokenCursor cursor;
  Recorder a;
  const auto result = run(cursor, {&a});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ExitCode::bad_tape);
  EXPECT_EQ(a.indices.size(), 2U);
  EXPECT_EQ(a.finished, 0);
}

TEST(SlotTable, GrowsToTheSlotAskedForAndNotByTheNumberOfEvents) {
  SlotTable<int> table;
  for (int round = 0; round < 100000; ++round) {
    table[format::SlotIndex{5}] = round;
  }
  EXPECT_LE(table.size(), 100U);
  EXPECT_EQ(table[format::SlotIndex{5}], 99999);
}

}  // namespace
}  // namespace heaptape::analyzers
