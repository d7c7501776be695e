// Same tape, same allocator, serial or total: the same order and the same placements every time.
#include <gtest/gtest.h>

#include <set>

#include "tests/replayer/engine_harness.h"

namespace heaptape::replayer {
namespace {

Plan busy_plan(Order order) {
  GeneratedTape tape({.seed = 42,
                      .steps = 60'000,
                      .threads = order == Order::serial ? 1U : 5U,
                      .live_target = 3'000,
                      .largest_bytes = 60'000,
                      .calls_per_run = 30});
  return must_compile(tape, order);
}

void expect_the_same_every_time(const EngineSetup& setup) {
  for (const Order order : {Order::serial, Order::total}) {
    const Plan plan = busy_plan(order);
    std::set<std::uint64_t> orders;
    std::set<std::uint64_t> placements;
    for (int i = 0; i < 3; ++i) {
      const EngineRun run = run_engine(plan, setup);
      ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
      if (run.result.randomised != 0) GTEST_SKIP() << "address randomisation cannot be switched off here";
      EXPECT_EQ(run.result.placement_valid, 1U);
      orders.insert(run.result.order_digest);
      placements.insert(run.result.placement_digest);
    }
    EngineSetup timed = setup;
    timed.mode = RunMode::time;
    orders.insert(run_engine(plan, timed).result.order_digest);
    EXPECT_EQ(orders.size(), 1U) << "order " << int(order);
    EXPECT_EQ(placements.size(), 1U) << "order " << int(order);
  }
}

// A library of Debian's, preloaded, or by prefix if there is one.
void expect_library_repeats(const char* soname, const char* prefix,
                            std::vector<std::string> environment = {}) {
  const std::string path = find_library(soname);
  if (path.empty()) GTEST_SKIP() << soname << " is not installed";
  EngineSetup setup = {.candidate = CandidateKind::process, .name = soname, .library = path, .preload = path};
  if (*prefix != '\0') {
    setup = {.candidate = CandidateKind::library, .name = soname, .library = path, .prefix = prefix};
  }
  setup.environment = std::move(environment);
  expect_the_same_every_time(setup);
}

TEST(Placement, RepeatsForGlibc) {
  expect_the_same_every_time({.candidate = CandidateKind::process, .name = "glibc"});
}
TEST(Placement, RepeatsForArena) { expect_the_same_every_time({.name = "arena"}); }
TEST(Placement, RepeatsForTcmalloc) { expect_library_repeats("libtcmalloc_minimal.so.4", ""); }
TEST(Placement, RepeatsForTbbmalloc) { expect_library_repeats("libtbbmalloc.so.2", "scalable_"); }
TEST(Placement, RepeatsForTbbmallocPreloaded) { expect_library_repeats("libtbbmalloc_proxy.so.2", ""); }
TEST(Placement, RepeatsForMimallocWithItsPurgeOff) {
  const std::vector<std::string> no_purge = {"MIMALLOC_PAGE_RESET=0", "MIMALLOC_ALLOW_DECOMMIT=0",
                                             "MIMALLOC_PURGE_DELAY=-1"};
  expect_library_repeats("libmimalloc.so.2", "", no_purge);
  expect_library_repeats("libmimalloc.so.2", "mi_", no_purge);
}

TEST(Order, HasAnotherDigestWhenAnotherOrderRan) {
  std::set<std::uint64_t> digests;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    GeneratedTape tape({.seed = seed, .steps = 2'000, .threads = 3});
    digests.insert(run_engine(must_compile(tape, Order::total), {}).result.order_digest);
  }
  EXPECT_EQ(digests.size(), 3U);
}

TEST(Order, OfDepsRunsEveryCallOfEveryThread) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    GeneratedTape tape(
        {.seed = seed, .steps = 50'000, .threads = 16, .live_target = 500, .calls_per_run = 3});
    const Plan plan = must_compile(tape, Order::deps);
    for (const RunMode mode : {RunMode::time, RunMode::space}) {
      const EngineRun run = run_engine(
          plan,
          {.candidate = CandidateKind::process, .name = "glibc", .mode = mode, .touch = TouchMode::all});
      ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
      EXPECT_EQ(run.result.ops_executed, plan.calls());
      EXPECT_EQ(run.result.failed_allocations, 0U);
      EXPECT_EQ(run.result.skipped_ops, 0U);
      EXPECT_NE(run.result.order_digest, 0U);
    }
  }
}

}  // namespace
}  // namespace heaptape::replayer
