// `null` proves that the harness counts nothing of its own: its resident size is zero pages.
#include <gtest/gtest.h>

#include "tests/replayer/engine_harness.h"

namespace heaptape::replayer {
namespace {

struct Case {
  Order order;
  std::uint32_t threads;
  std::uint64_t steps;
  TouchMode touch;
  std::uint32_t largest_bytes;
};

void expect_nothing_resident(const Case& c) {
  GeneratedTape tape({.seed = c.steps + c.threads,
                      .steps = c.steps,
                      .threads = c.threads,
                      .live_target = c.steps > 100'000 ? 200'000U : 300U,
                      .largest_bytes = c.largest_bytes,
                      .calls_per_run = 50});
  const Plan plan = must_compile(tape, c.order);
  const EngineRun run = run_engine(plan, {.touch = c.touch});
  SCOPED_TRACE(testing::Message() << "order " << int(c.order) << ", threads " << c.threads << ", steps "
                                  << c.steps << ", touch " << int(c.touch) << ", largest "
                                  << c.largest_bytes);
  ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
  EXPECT_EQ(run.result.ops_executed, plan.calls());
  ASSERT_EQ(run.instants.size(), plan.instants().size());
  if (c.order != Order::deps) {
    EXPECT_GE(run.instants.size(), 3U);
  }
  std::size_t exact = 0;
  for (std::size_t i = 0; i < run.instants.size(); ++i) {
    const InstantResult& instant = run.instants[i];
    EXPECT_EQ(instant.resident_bytes, 0U) << "instant " << i;
    EXPECT_EQ(instant.committed_bytes, 0U) << "instant " << i;
    EXPECT_EQ(instant.reserved_bytes, 0U) << "instant " << i;
    EXPECT_EQ(instant.requested_bytes, plan.instants()[i].requested_bytes) << "instant " << i;
    EXPECT_EQ(instant.live_objects, plan.instants()[i].live_objects) << "instant " << i;
    EXPECT_EQ(instant.op_index, plan.instants()[i].op_index) << "instant " << i;
    if (instant.method == FootprintMethod::smaps) ++exact;
  }
  if (c.order != Order::deps) {
    EXPECT_GE(exact, 1U);
  }
  EXPECT_EQ(run.result.peak_resident_bytes, 0U);
  EXPECT_EQ(run.result.after_purge.resident_bytes, 0U);
  EXPECT_EQ(run.result.failed_allocations, 0U);
  EXPECT_EQ(run.result.misaligned, 0U);
  EXPECT_EQ(run.result.skipped_ops, 0U);
}

TEST(NullCandidate, HasNoResidentPageAtAnyInstantWhateverIsTouched) {
  for (const TouchMode touch : {TouchMode::none, TouchMode::first, TouchMode::pages, TouchMode::all}) {
    for (const std::uint32_t threads : {1U, 64U}) {
      for (const Order order : {Order::serial, Order::total, Order::deps}) {
        expect_nothing_resident({order, threads, 1'000, touch, 400});
        expect_nothing_resident({order, threads, 1'000, touch, 3'000'000});
      }
    }
  }
}

TEST(NullCandidate, HasNoResidentPageOnATapeOfFiveMillionCalls) {
  expect_nothing_resident({Order::serial, 1, 5'000'000, TouchMode::first, 400});
  expect_nothing_resident({Order::total, 64, 5'000'000, TouchMode::pages, 400});
  expect_nothing_resident({Order::deps, 64, 5'000'000, TouchMode::all, 400});
}

TEST(NullCandidate, TellsHowTheOrderRan) {
  GeneratedTape tape({.steps = 20'000, .threads = 3});
  const Plan plan = must_compile(tape, Order::total);
  const EngineRun space = run_engine(plan, {});
  const EngineRun timed = run_engine(plan, {.mode = RunMode::time});
  ASSERT_TRUE(space.fine()) << space.result.message;
  ASSERT_TRUE(timed.fine()) << timed.result.message;
  EXPECT_EQ(space.result.order_digest, timed.result.order_digest);
  EXPECT_GT(timed.result.elapsed_ns, 0U);
  EXPECT_GT(timed.result.handovers, 100U);
  EXPECT_EQ(timed.instants.size(), 0U);
}

}  // namespace
}  // namespace heaptape::replayer
