// Where a space run stops to measure.
#include <gtest/gtest.h>

#include <algorithm>

#include "replayer/plan/compile.h"
#include "replayer/plan/verify.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

Plan compile(const Tape& tape, Order order) {
  format::VectorCursor cursor(tape.events());
  auto plan = compile_plan(cursor, {.order = order});
  EXPECT_TRUE(plan && verify_plan(*plan));
  return std::move(*plan);
}

TEST(PlanInstants, HoldTheExactPeakAndTheEndAndStayBounded) {
  const Tape tape = random_tape(3, 200'000, 4, 3000);
  for (const Order order : {Order::serial, Order::total}) {
    const Plan plan = compile(tape, order);
    const auto instants = plan.instants();
    EXPECT_LE(instants.size(), 1000U + 21);
    EXPECT_GE(instants.size(), 500U);
    std::size_t exact = 0;
    bool has_peak = false;
    for (std::size_t i = 0; i < instants.size(); ++i) {
      exact += instants[i].exact;
      has_peak = has_peak || (instants[i].exact != 0 &&
                              instants[i].requested_bytes == plan.header().peak_requested_bytes);
      if (i > 0) {
        EXPECT_LT(instants[i - 1].op_index, instants[i].op_index);
      }
    }
    EXPECT_TRUE(has_peak);
    EXPECT_LE(exact, 21U);
    EXPECT_GE(exact, 12U);
    EXPECT_EQ(instants.back().op_index, plan.header().op_count);
    EXPECT_EQ(instants.back().exact, 1U);
    EXPECT_EQ(instants.back().requested_bytes, tape.live_bytes());
  }
}

TEST(PlanInstants, FindAPeakOfOneOperationAmongManyThousand) {
  Tape tape;
  for (int i = 0; i < 30'000; ++i) {
    tape.free(0, tape.allocate(0, i == 17'777 ? 1'000'000 : 10));
  }
  const Plan plan = compile(tape, Order::serial);
  const auto instants = plan.instants();
  const auto peak = std::find_if(instants.begin(), instants.end(),
                                 [](const PlanInstant& i) { return i.requested_bytes == 1'000'000; });
  ASSERT_NE(peak, instants.end());
  EXPECT_EQ(peak->exact, 1U);
  EXPECT_EQ(peak->event_index, 2U * 17'777);
  EXPECT_EQ(peak->op_index, 2U * 17'777 + 1);
}

TEST(PlanInstants, DepsHasNone) {
  EXPECT_TRUE(compile(random_tape(4, 1000, 3, 50), Order::deps).instants().empty());
}

TEST(PlanInstants, CanBeMadeExactAfterwards) {
  Plan plan = compile(random_tape(5, 1000, 1, 50), Order::serial);
  const auto cheap = std::find_if(plan.instants().begin(), plan.instants().end(),
                                  [](const PlanInstant& i) { return i.exact == 0; });
  ASSERT_NE(cheap, plan.instants().end());
  plan.set_exact(static_cast<std::size_t>(cheap - plan.instants().begin()), true);
  EXPECT_EQ(cheap->exact, 1U);
}

}  // namespace
}  // namespace heaptape::replayer
