// The engine against candidates of which it is known exactly what must come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/replayer/engine_harness.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t page = 4096;

Plan generated_plan(Order order, std::uint32_t threads, std::uint64_t steps = 20'000,
                    std::uint64_t seed = 7) {
  GeneratedTape tape(
      {.seed = seed, .steps = steps, .threads = threads, .live_target = 400, .largest_bytes = 20'000});
  return must_compile(tape, order);
}

// All ops of a plan in the order of its runs.
std::vector<PlanOp> in_order(const Plan& plan) {
  std::vector<PlanOp> all;
  std::vector<std::size_t> next(plan.threads().size());
  for (const PlanRun& run : plan.runs()) {
    for (std::uint32_t i = 0; i < run.op_count; ++i) all.push_back(plan.ops(run.thread)[next[run.thread]++]);
  }
  return all;
}

// --- counting -------------------------------------------------------------------------------

class CountingCandidate : public testing::TestWithParam<Order> {
 protected:
  CountingCandidate()
      : counts_(std::filesystem::temp_directory_path() / ("heaptape-counts-" + std::to_string(::getpid()))) {}
  ~CountingCandidate() override {
    std::error_code ignored;
    std::filesystem::remove(counts_, ignored);
  }

  // malloc, calloc, aligned, realloc, free, usable
  using Counts = std::array<std::uint64_t, 6>;
  [[nodiscard]] static Counts expected(const Plan& plan, RunMode mode) {
    Counts counts{};
    for (const PlanOp& op : plan.ops()) {
      switch (op.code) {
        case OpCode::malloc:
          ++counts[0];
          break;
        case OpCode::calloc:
          ++counts[1];
          break;
        case OpCode::aligned:
          ++counts[2];
          break;
        case OpCode::realloc:
          ++counts[3];
          break;
        case OpCode::free:
          ++counts[4];
          break;
        case OpCode::wait:
          break;
      }
    }
    // A space run asks for the usable size of each block once.
    if (mode == RunMode::space) counts[5] = counts[0] + counts[1] + counts[2] + counts[3];
    return counts;
  }
  void expect_only_the_plans_calls(EngineSetup setup, RunMode mode) {
    const Plan plan = generated_plan(GetParam(), GetParam() == Order::serial ? 1 : 5);
    setup.mode = mode;
    setup.environment = {"HEAPTAPE_COUNTS=" + counts_.native()};
    const EngineRun run = run_engine(plan, setup);
    ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
    Counts seen{};
    std::ifstream file(counts_);
    for (std::uint64_t& count : seen) file >> count;
    ASSERT_TRUE(file.good() || file.eof());
    EXPECT_EQ(seen, expected(plan, mode));
    EXPECT_GT(seen[0] * seen[1] * seen[2] * seen[3] * seen[4], 0U);
  }

  std::filesystem::path counts_;
};

TEST_P(CountingCandidate, LoadedByPrefixSeesThePlansCallsAndNothingElse) {
  for (const RunMode mode : {RunMode::time, RunMode::space}) {
    expect_only_the_plans_calls({.candidate = CandidateKind::library,
                                 .name = "counting",
                                 .library = HEAPTAPE_CANDIDATE_COUNTING,
                                 .prefix = "counted_"},
                                mode);
  }
}

TEST_P(CountingCandidate, PreloadedSeesThePlansCallsAndNothingElse) {
  for (const RunMode mode : {RunMode::time, RunMode::space}) {
    expect_only_the_plans_calls({.candidate = CandidateKind::process,
                                 .name = "counting",
                                 .library = HEAPTAPE_CANDIDATE_COUNTING_PRELOAD,
                                 .preload = HEAPTAPE_CANDIDATE_COUNTING_PRELOAD},
                                mode);
  }
}

std::string order_name(const testing::TestParamInfo<Order>& order) {
  constexpr const char* names[] = {"Serial", "Total", "Deps"};
  return names[static_cast<int>(order.param)];
}
INSTANTIATE_TEST_SUITE_P(Orders, CountingCandidate, testing::Values(Order::serial, Order::total, Order::deps),
                         order_name);

// --- mapping --------------------------------------------------------------------------------

// What the mapping candidate must have resident, usable and on live pages after each op.
class MappingModel {
 public:
  explicit MappingModel(std::uint32_t slots) : sizes_(slots, absent) {}
  void apply(const PlanOp& op) { sizes_[op.slot] = op.code == OpCode::free ? absent : op.size_bytes; }
  [[nodiscard]] std::uint64_t resident_bytes(TouchMode touch) const {
    std::uint64_t sum = 0;
    for (const std::uint64_t size : sizes_) {
      if (size == absent) continue;
      const bool whole = touch == TouchMode::all || touch == TouchMode::pages;
      const std::uint64_t touched = whole ? size : touch == TouchMode::first && size != 0 ? 1 : 0;
      sum += page + (touched + page - 1) / page * page;
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t usable_bytes() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t size : sizes_) sum += size == absent ? 0 : (size + page - 1) / page * page;
    return sum;
  }

 private:
  static constexpr std::uint64_t absent = ~std::uint64_t{0};
  std::vector<std::uint64_t> sizes_;
};

const EngineSetup mapping_setup = {.candidate = CandidateKind::library,
                                   .name = "mapping",
                                   .library = HEAPTAPE_CANDIDATE_MAPPING,
                                   .prefix = "mapping_"};

// Without realloc: that one touches what it copies, whatever the touch mode.
Plan plan_without_realloc(std::uint64_t seed) {
  Tape tape;
  std::vector<std::uint64_t> live;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 8'000; ++i) {
    if (live.empty() || (random() % 100 < 55 && live.size() < 500)) {
      const auto kind = random() % 5 == 0 ? format::Kind::calloc : format::Kind::malloc;
      const std::uint64_t size = random() % 10 == 0 ? random() % 300'000 : random() % 9'000;
      live.push_back(tape.allocate(0, random() % 40 == 0 ? 0 : size, kind));
    } else {
      std::swap(live[random() % live.size()], live.back());
      tape.free(0, live.back());
      live.pop_back();
    }
  }
  format::VectorCursor events(tape.events());
  return must_compile(events, Order::serial, 20, 200);
}

TEST(MappingCandidate, HasExactlyTheKnownResidentSizeAtEveryInstantInEveryTouchMode) {
  for (const TouchMode touch : {TouchMode::none, TouchMode::first, TouchMode::pages, TouchMode::all}) {
    const Plan plan = plan_without_realloc(3);
    EngineSetup setup = mapping_setup;
    setup.touch = touch;
    const EngineRun run = run_engine(plan, setup);
    ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
    ASSERT_EQ(run.instants.size(), plan.instants().size());
    ASSERT_GT(run.instants.size(), 40U);
    MappingModel model(plan.header().slot_count);
    std::uint64_t peak = 0;
    std::size_t exact = 0;
    std::size_t at = 0;
    const std::vector<PlanOp> ops = in_order(plan);
    for (std::size_t done = 0; done <= ops.size(); ++done) {
      for (; at < run.instants.size() && run.instants[at].op_index == done; ++at) {
        const InstantResult& instant = run.instants[at];
        EXPECT_EQ(instant.resident_bytes, model.resident_bytes(touch))
            << "instant " << at << ", touch " << int(touch);
        EXPECT_EQ(instant.usable_bytes, model.usable_bytes()) << "instant " << at;
        EXPECT_EQ(instant.committed_bytes, model.resident_bytes(TouchMode::all)) << "instant " << at;
        EXPECT_EQ(instant.reserved_bytes, instant.committed_bytes) << "instant " << at;
        peak = std::max(peak, instant.resident_bytes);
        exact += instant.method == FootprintMethod::smaps ? 1 : 0;
      }
      if (done < ops.size()) model.apply(ops[done]);
    }
    EXPECT_EQ(at, run.instants.size());
    EXPECT_GE(exact, 10U);
    EXPECT_EQ(run.result.peak_resident_bytes, peak);
    EXPECT_EQ(run.result.after_purge.resident_bytes, model.resident_bytes(touch));
    EXPECT_EQ(run.result.purged, 0U);
    EXPECT_EQ(run.result.has_usable_size, 1U);
  }
}

TEST(MappingCandidate, HasExactlyTheKnownResidentSizeWithReallocAndThreads) {
  for (const Order order : {Order::serial, Order::total, Order::deps}) {
    const Plan plan = generated_plan(order, 6);
    EngineSetup setup = mapping_setup;
    setup.touch = TouchMode::all;
    const EngineRun run = run_engine(plan, setup);
    ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
    MappingModel model(plan.header().slot_count);
    if (order == Order::deps) {
      // No instants; at the end what the whole tape leaves, counted from a serial plan's ops.
      const Plan serial = generated_plan(Order::serial, 6);
      MappingModel end(serial.header().slot_count);
      for (const PlanOp& op : in_order(serial)) end.apply(op);
      EXPECT_EQ(run.result.after_purge.resident_bytes, end.resident_bytes(TouchMode::all));
      EXPECT_EQ(run.result.after_purge.usable_bytes, end.usable_bytes());
      EXPECT_GE(run.result.peak_resident_bytes, run.result.after_purge.resident_bytes);
      continue;
    }
    std::size_t at = 0;
    const std::vector<PlanOp> ops = in_order(plan);
    for (std::size_t done = 0; done <= ops.size(); ++done) {
      for (; at < run.instants.size() && run.instants[at].op_index == done; ++at)
        EXPECT_EQ(run.instants[at].resident_bytes, model.resident_bytes(TouchMode::all)) << "instant " << at;
      if (done < ops.size()) model.apply(ops[done]);
    }
    EXPECT_EQ(at, plan.instants().size());
  }
}

// Blocks begin on pages of their own: live pages are the touched pages of the blocks.
TEST(MappingCandidate, HasExactlyTheKnownLivePages) {
  const Plan plan = plan_without_realloc(11);
  EngineSetup setup = mapping_setup;
  setup.touch = TouchMode::none;
  const EngineRun run = run_engine(plan, setup);
  ASSERT_TRUE(run.fine()) << run.result.message;
  for (const InstantResult& instant : run.instants) {
    EXPECT_EQ(instant.live_page_bytes, instant.usable_bytes);
    EXPECT_GE(instant.live_huge_bytes, instant.live_page_bytes);
  }
}

// --- faults ---------------------------------------------------------------------------------

EngineSetup faulty_setup(const char* fault) {
  return {.candidate = CandidateKind::library,
          .name = "faulty",
          .library = HEAPTAPE_CANDIDATE_FAULTY,
          .prefix = "faulty_",
          .environment = {std::string("HEAPTAPE_FAULT=") + fault}};
}

TEST(FaultyCandidate, ThatReturnsNullIsCountedAndWhatDependsOnItSkipped) {
  const Plan plan = generated_plan(Order::serial, 1);
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t skipped = 0;
  std::vector<bool> live(plan.header().slot_count);
  for (const PlanOp& op : in_order(plan)) {
    if (op.code == OpCode::free && !live[op.slot]) {
      ++skipped;
    } else if (op.code == OpCode::free) {
      live[op.slot] = false;
    } else {
      const bool fails = ++calls % 7 == 0;
      failed += fails && op.size_bytes != 0 ? 1 : 0;
      // A realloc that fails keeps its block; one of no block makes one.
      live[op.slot] = !fails || (op.code == OpCode::realloc && live[op.slot]);
    }
  }
  ASSERT_GT(failed, 100U);
  ASSERT_GT(skipped, 100U);
  for (const RunMode mode : {RunMode::time, RunMode::space}) {
    EngineSetup setup = faulty_setup("null");
    setup.mode = mode;
    setup.touch = TouchMode::all;
    const EngineRun run = run_engine(plan, setup);
    ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
    EXPECT_EQ(run.result.failed_allocations, failed);
    EXPECT_EQ(run.result.skipped_ops, skipped);
    EXPECT_EQ(run.result.misaligned, 0U);
    if (mode == RunMode::space) {
      EXPECT_EQ(run.instants.back().live_objects,
                static_cast<std::uint64_t>(std::count(live.begin(), live.end(), true)));
    }
  }
}

TEST(FaultyCandidate, ThatReturnsMisalignedBlocksIsCounted) {
  const Plan plan = generated_plan(Order::serial, 1);
  std::uint64_t calls = 0;
  std::uint64_t misaligned = 0;
  for (const PlanOp& op : in_order(plan)) {
    if (op.code == OpCode::free || ++calls % 7 != 0) continue;
    // Eight bytes off: wrong for whoever asked for more than that, or for objects of 16 bytes and more.
    misaligned +=
        op.code == OpCode::aligned ? op.alignment_log2 > 3 && op.size_bytes != 0 : op.size_bytes >= 16;
  }
  ASSERT_GT(misaligned, 100U);
  const EngineRun run = run_engine(plan, faulty_setup("misaligned"));
  ASSERT_TRUE(run.fine()) << run.wait_status << ": " << run.result.message;
  EXPECT_EQ(run.result.misaligned, misaligned);
  EXPECT_EQ(run.result.failed_allocations, 0U);
}

TEST(FaultyCandidate, ThatCrashesLeavesTheOpInTheMessage) {
  const Plan plan = generated_plan(Order::serial, 1);
  std::uint64_t calls = 0;
  std::uint64_t index = 0;
  for (const PlanOp& op : in_order(plan)) {
    if (op.code != OpCode::free && ++calls == 100) break;
    ++index;
  }
  EngineSetup setup = faulty_setup("crash");
  const EngineRun run = run_engine(plan, setup);
  EXPECT_TRUE(WIFSIGNALED(run.wait_status));
  EXPECT_EQ(WTERMSIG(run.wait_status), SIGSEGV);
  EXPECT_EQ(run.result.status, EngineStatus::not_finished);
  EXPECT_THAT(run.result.message,
              HasSubstr("signal 11 at address 0x0 in op " + std::to_string(index) + " of the plan"));
  setup.mode = RunMode::time;
  const EngineRun timed = run_engine(plan, setup);
  EXPECT_TRUE(WIFSIGNALED(timed.wait_status));
  EXPECT_EQ(timed.result.status, EngineStatus::not_finished);
  EXPECT_THAT(timed.result.message, HasSubstr("signal 11 at address 0x0 in thread 0"));
}

// --- what cannot be replayed ----------------------------------------------------------------

TEST(BareCandidate, GetsZeroedBlocksByHandAndIsRefusedOnlyIfTheTapeAsksForAlignment) {
  EngineSetup setup = {.candidate = CandidateKind::library,
                       .name = "bare",
                       .library = HEAPTAPE_CANDIDATE_FAULTY,
                       .prefix = "bare_"};
  Tape plain;
  for (int i = 0; i < 50; ++i) plain.free(0, plain.allocate(0, 100, format::Kind::calloc));
  format::VectorCursor plain_events(plain.events());
  const EngineRun fine = run_engine(must_compile(plain_events, Order::serial), setup);
  EXPECT_TRUE(fine.fine()) << fine.result.message;
  EXPECT_EQ(fine.result.has_usable_size, 0U);

  Tape aligned;
  aligned.allocate(0, 100, format::Kind::posix_memalign, 64);
  format::VectorCursor aligned_events(aligned.events());
  const EngineRun refused = run_engine(must_compile(aligned_events, Order::serial), setup);
  EXPECT_EQ(refused.wait_status, 0);
  EXPECT_EQ(refused.result.status, EngineStatus::refused);
  EXPECT_THAT(refused.result.message, HasSubstr("bare_memalign"));
}

void expect_refusal(const EngineSetup& setup, const std::string& why) {
  const EngineRun run = run_engine(generated_plan(Order::serial, 1, 100), setup);
  EXPECT_EQ(run.wait_status, 0);
  EXPECT_EQ(run.result.status, EngineStatus::refused);
  EXPECT_THAT(run.result.message, HasSubstr(why));
}

TEST(Refusals, NameWhatIsWrong) {
  expect_refusal({.name = "nosuchheap"}, "nosuchheap: no such built-in heap");
  expect_refusal({.name = "arena", .tunables = "colour=blue"}, "unknown setting 'colour=blue'");
  expect_refusal({.name = "arena", .arena_bytes = 100}, "cannot make one of 100 bytes");
  expect_refusal(
      {.candidate = CandidateKind::library, .name = "gone", .library = "/no/such/lib.so", .prefix = "x"},
      "cannot load it");
  expect_refusal({.candidate = CandidateKind::library,
                  .name = "mapping",
                  .library = HEAPTAPE_CANDIDATE_MAPPING,
                  .prefix = "other_"},
                 "there is no function other_malloc");
  expect_refusal(
      {.candidate = CandidateKind::library, .name = "mapping", .library = HEAPTAPE_CANDIDATE_MAPPING},
      "malloc comes from");
  // Named as the process's malloc, but not preloaded.
  expect_refusal({.candidate = CandidateKind::process,
                  .name = "counting",
                  .library = HEAPTAPE_CANDIDATE_COUNTING_PRELOAD},
                 "was it preloaded");
  // The C library was asked for, another malloc is in front of it.
  expect_refusal(
      {.candidate = CandidateKind::process, .name = "glibc", .preload = HEAPTAPE_CANDIDATE_COUNTING_PRELOAD},
      "unset LD_PRELOAD");
}

TEST(Arena, ServesATapeAndReturnsNullWhenItIsTooSmall) {
  const Plan plan = generated_plan(Order::total, 4);
  const EngineRun enough = run_engine(plan, {.name = "arena"});
  ASSERT_TRUE(enough.fine()) << enough.result.message;
  EXPECT_EQ(enough.result.failed_allocations, 0U);
  EXPECT_EQ(enough.result.misaligned, 0U);
  EXPECT_GT(enough.result.peak_resident_bytes, plan.header().peak_requested_bytes / 2);
  EXPECT_EQ(enough.result.has_usable_size, 1U);
  const EngineRun small = run_engine(plan, {.name = "arena", .arena_bytes = 128 * 1024});
  ASSERT_TRUE(small.fine()) << small.result.message;
  EXPECT_GT(small.result.failed_allocations, 0U);
  EXPECT_LE(small.result.peak_resident_bytes, 128U * 1024);
}

}  // namespace
}  // namespace heaptape::replayer
