// The plan compiler case by case: what becomes of each kind of event.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "replayer/plan/compile.h"
#include "replayer/plan/verify.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

using format::EventFlag;
using format::Kind;
using testing::ElementsAre;

Plan compile(std::vector<format::Event> events, Order order) {
  format::VectorCursor cursor(std::move(events));
  auto plan = compile_plan(cursor, {.order = order});
  EXPECT_TRUE(plan) << plan.error().message();
  const auto sound = verify_plan(*plan);
  EXPECT_TRUE(sound) << sound.error().message();
  return std::move(*plan);
}

// "malloc 0 16", "aligned 3 100 @64", "wait thread 1 done 3", "free 0 !" (! = published), ...
std::string text(const PlanOp& op) {
  static constexpr const char* names[] = {"?", "malloc", "calloc", "aligned", "realloc", "free", "wait"};
  std::string s = names[static_cast<int>(op.code)];
  if (op.code == OpCode::wait) {
    return s + fmt::format(" thread {} done {}", op.slot, op.size_bytes);
  }
  s += fmt::format(" {}", op.slot);
  if (op.code != OpCode::free) {
    s += fmt::format(" {}", op.size_bytes);
  }
  if (op.code == OpCode::aligned) {
    s += fmt::format(" @{}", std::uint64_t{1} << op.alignment_log2);
  }
  if ((op.flags & op_realloc_null) != 0) {
    s += " null";
  }
  return (op.flags & op_publish) != 0 ? s + " !" : s;
}

std::vector<std::string> text(std::span<const PlanOp> ops) {
  std::vector<std::string> lines;
  for (const PlanOp& op : ops) {
    lines.push_back(text(op));
  }
  return lines;
}

TEST(PlanCompile, MapsEveryKindToOneOfFiveCalls) {
  Tape tape;
  const auto a = tape.allocate(0, 16);
  tape.allocate(0, 24, Kind::calloc);
  tape.allocate(0, 32, Kind::operator_new_array_nothrow);
  tape.allocate(0, 40, Kind::operator_new, 64);
  tape.allocate(0, 48, Kind::memalign, 100);
  tape.allocate(0, 56, Kind::aligned_alloc, 1);
  tape.allocate(0, 64, Kind::valloc);
  const auto b = tape.reallocate(0, a, 100);
  tape.free(0, b);
  tape.reallocate_null(0, 7);
  const Plan plan = compile(tape.events(), Order::serial);
  EXPECT_THAT(text(plan.ops()), ElementsAre("malloc 0 16", "calloc 1 24", "malloc 2 32", "aligned 3 40 @64",
                                            "aligned 4 48 @128", "aligned 5 56 @8", "aligned 6 64 @4096",
                                            "realloc 0 100", "free 0", "realloc 0 7 null"));
  EXPECT_EQ(plan.header().slot_count, 7U);
  EXPECT_EQ(plan.header().largest_request_bytes, 100U);
  EXPECT_EQ(plan.header().peak_requested_bytes, 24U + 32 + 40 + 48 + 56 + 64 + 100);
  EXPECT_EQ(plan.header().peak_live_objects, 7U);
}

TEST(PlanCompile, ReplaysImpliedReleasesAndFreeingReallocsAsFrees) {
  Tape tape;
  const auto a = tape.allocate(0, 1);
  const auto b = tape.allocate(0, 2);
  tape.free(0, a, EventFlag::implied);
  tape.reallocate_to_nothing(0, b);
  const Plan plan = compile(tape.events(), Order::serial);
  EXPECT_THAT(text(plan.ops()), ElementsAre("malloc 0 1", "malloc 1 2", "free 0", "free 1"));
  EXPECT_EQ(plan.header().freeing_reallocs, 1U);
}

TEST(PlanCompile, ReplaysAReallocToZeroThatKeptABlockAsFreeAndMalloc) {
  Tape tape;
  const auto a = tape.allocate(0, 10);
  tape.free(0, tape.reallocate(0, a, 0));
  const Plan plan = compile(tape.events(), Order::serial);
  EXPECT_THAT(text(plan.ops()), ElementsAre("malloc 0 10", "free 0", "malloc 0 0", "free 0"));
}

TEST(PlanCompile, SkipsAndCountsWhatCannotBeReplayed) {
  Tape tape;
  tape.nothing(0, Kind::malloc, EventFlag::failed);
  tape.nothing(0, Kind::realloc, EventFlag::unfinished);
  tape.nothing(0, Kind::free, EventFlag::unknown_release);
  tape.nothing(0, Kind::free, EventFlag::null_argument);
  tape.nothing(0, Kind::malloc_trim, EventFlag{});
  tape.reallocate_unknown(0, 5);
  const Plan plan = compile(tape.events(), Order::serial);
  EXPECT_THAT(text(plan.ops()), ElementsAre("malloc 0 5"));
  EXPECT_EQ(plan.header().skipped_failed, 2U);
  EXPECT_EQ(plan.header().skipped_unknown, 2U);
}

TEST(PlanCompile, AnEmptyTapeIsAPlanOfNothing) {
  for (const Order order : {Order::serial, Order::total, Order::deps}) {
    const Plan plan = compile({}, order);
    EXPECT_EQ(plan.header().op_count, 0U);
    EXPECT_EQ(plan.header().thread_count, 1U);
  }
}

TEST(PlanCompile, SerialPutsAllThreadsIntoOne) {
  Tape tape;
  const auto a = tape.allocate(5, 1);
  tape.free(9, a);
  const Plan plan = compile(tape.events(), Order::serial);
  EXPECT_EQ(plan.header().thread_count, 1U);
  EXPECT_THAT(text(plan.ops(0)), ElementsAre("malloc 0 1", "free 0"));
}

TEST(PlanCompile, TotalKeepsThreadsDenseAndTheirOrderAsRuns) {
  Tape tape;
  tape.nothing(7, Kind::malloc, EventFlag::failed);  // a thread without operations is none
  const auto a = tape.allocate(5, 1);
  const auto b = tape.allocate(5, 2);
  tape.free(9, a);
  tape.free(5, b);
  format::VectorCursor cursor(tape.events());
  const auto plan = compile_plan(cursor, {.order = Order::total, .exact_instants = 2, .cheap_instants = 2});
  ASSERT_TRUE(plan);
  ASSERT_TRUE(verify_plan(*plan));
  EXPECT_EQ(plan->header().thread_count, 2U);
  EXPECT_THAT(text(plan->ops(0)), ElementsAre("malloc 0 1", "malloc 1 2", "free 1"));
  EXPECT_THAT(text(plan->ops(1)), ElementsAre("free 0"));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;
  for (const PlanRun& r : plan->runs()) {
    runs.emplace_back(r.thread, r.op_count);
  }
  EXPECT_THAT(runs, ElementsAre(std::pair(0, 2), std::pair(1, 1), std::pair(0, 1)));
}

TEST(PlanCompile, DepsWaitsOnlyWhereAnObjectOrSlotComesFromAnotherThread) {
  Tape tape;
  const auto a = tape.allocate(0, 1);
  const auto b = tape.allocate(0, 2);
  tape.free(1, b);      // waits for thread 0's second operation
  tape.free(1, a);      // covered by that wait
  tape.allocate(1, 3);  // own free slot, of a
  tape.allocate(0, 4);  // the slot of b, freed by thread 1 as its operation 1
  const Plan plan = compile(tape.events(), Order::deps);
  EXPECT_THAT(text(plan.ops(0)),
              ElementsAre("malloc 0 1", "malloc 1 2 !", "wait thread 1 done 2", "malloc 1 4"));
  EXPECT_THAT(text(plan.ops(1)), ElementsAre("wait thread 0 done 2", "free 1 !", "free 0", "malloc 0 3"));
  EXPECT_EQ(plan.header().slot_count, 2U);
  EXPECT_EQ(plan.header().wait_count, 2U);
  EXPECT_EQ(plan.calls(), 6U);
}

TEST(PlanCompile, RefusesEventsWhoseSlotsContradictEachOther) {
  Tape tape;
  const auto a = tape.allocate(0, 1);
  tape.free(0, a);
  for (const Order order : {Order::serial, Order::total, Order::deps}) {
    auto twice = tape.events();
    twice.push_back(twice.back());
    auto taken = tape.events();
    taken[1] = taken[0];
    auto far = tape.events();
    far[0].slot = format::SlotIndex{1000};
    auto huge = tape.events();
    huge[0].size_bytes = ~std::uint64_t{0};
    huge[1] = huge[0];
    huge[1].slot = format::SlotIndex{1};
    for (const auto& events : {twice, taken, far, huge}) {
      format::VectorCursor cursor(events);
      const auto plan = compile_plan(cursor, {.order = order});
      ASSERT_FALSE(plan);
      EXPECT_EQ(plan.error().code(), format::ExitCode::bad_tape);
    }
  }
}

TEST(PlanCompile, AThousandThreadsThatHandOverStayWithinThePeakOfSlots) {
  const Tape tape = random_tape(1, 50'000, 1000, 500);
  for (const Order order : {Order::total, Order::deps}) {
    const Plan plan = compile(tape.events(), order);
    EXPECT_EQ(plan.header().thread_count, 1000U);
    EXPECT_EQ(plan.header().slot_count, plan.header().peak_live_objects);
  }
}

}  // namespace
}  // namespace heaptape::replayer
