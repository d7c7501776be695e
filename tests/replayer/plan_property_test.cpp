// Random tapes against a naive model: maps instead of slots, no cleverness.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "replayer/plan/compile.h"
#include "replayer/plan/verify.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

Plan compile(const Tape& tape, Order order) {
  format::VectorCursor cursor(tape.events());
  auto plan = compile_plan(cursor, {.order = order});
  EXPECT_TRUE(plan) << plan.error().message();
  const auto sound = verify_plan(*plan);
  EXPECT_TRUE(sound) << sound.error().message();
  return std::move(*plan);
}

// What a thread asks of its allocator, without slots: code, size, alignment.
struct Call {
  OpCode code;
  std::uint64_t size_bytes;
  std::uint64_t alignment;
  friend bool operator==(const Call&, const Call&) = default;
};

// The calls of each thread, straight from the events.
std::map<std::uint32_t, std::vector<Call>> model_calls(const Tape& tape, bool one_thread) {
  using format::EventFlag;
  using format::Kind;
  std::map<std::uint32_t, std::vector<Call>> calls;
  for (const format::Event& e : tape.events()) {
    const std::uint32_t thread = one_thread ? 0 : static_cast<std::uint32_t>(e.thread);
    const bool acquires = e.object != format::ObjectId::none;
    const bool releases = e.released != format::ObjectId::none;
    if (!acquires && !releases) {
      continue;
    }
    auto& mine = calls[thread];
    if (e.kind == Kind::realloc && acquires &&
        (releases ? e.size_bytes != 0 : e.has(EventFlag::null_argument))) {
      mine.push_back({OpCode::realloc, e.size_bytes, 1});
      continue;
    }
    if (releases) {
      mine.push_back({OpCode::free, 0, 1});
    }
    if (acquires && e.alignment != 0) {
      mine.push_back({OpCode::aligned, e.size_bytes, e.alignment});
    } else if (acquires) {
      mine.push_back({e.kind == Kind::calloc ? OpCode::calloc : OpCode::malloc, e.size_bytes, 1});
    }
  }
  return calls;
}

std::vector<Call> plan_calls(std::span<const PlanOp> ops) {
  std::vector<Call> calls;
  for (const PlanOp& op : ops) {
    if (op.code != OpCode::wait) {
      calls.push_back({op.code, op.size_bytes, std::uint64_t{1} << op.alignment_log2});
    }
  }
  return calls;
}

// Executes operations with a map for a slot table; complains about what no allocator would survive.
class NaiveEngine {
 public:
  void execute(const PlanOp& op) {
    const bool is_resize = op.code == OpCode::realloc && (op.flags & op_realloc_null) == 0;
    if (op.code == OpCode::free || is_resize) {
      ASSERT_EQ(live_.erase(op.slot), 1U) << "slot " << op.slot << " is empty";
    }
    if (op.code != OpCode::free) {
      ASSERT_TRUE(live_.emplace(op.slot, op.size_bytes).second) << "slot " << op.slot << " is in use";
    }
  }
  [[nodiscard]] std::multimap<std::uint64_t, int> sizes() const {
    std::multimap<std::uint64_t, int> sizes;
    for (const auto& [slot, size] : live_) {
      sizes.emplace(size, 0);
    }
    return sizes;
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [slot, size] : live_) {
      sum += size;
    }
    return sum;
  }
  [[nodiscard]] std::size_t objects() const { return live_.size(); }

 private:
  std::map<std::uint32_t, std::uint64_t> live_;
};

std::multimap<std::uint64_t, int> live_sizes(const Tape& tape) {
  std::multimap<std::uint64_t, int> sizes;
  for (const auto& [id, object] : tape.live()) {
    sizes.emplace(object.size_bytes, 0);
  }
  return sizes;
}

class PlanProperty : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PlanProperty, EveryThreadMakesExactlyItsCallsInItsOrder) {
  const Tape tape = random_tape(GetParam(), 3000, 1 + GetParam() % 7, 100);
  for (const Order order : {Order::serial, Order::total, Order::deps}) {
    const Plan plan = compile(tape, order);
    std::vector<std::vector<Call>> expected;
    for (auto& [thread, calls] : model_calls(tape, order == Order::serial)) {
      expected.push_back(std::move(calls));
    }
    std::vector<std::vector<Call>> seen;
    for (std::uint32_t t = 0; t < plan.header().thread_count; ++t) {
      seen.push_back(plan_calls(plan.ops(t)));
    }
    // The plan numbers threads by their first operation, the model by the tape.
    EXPECT_TRUE(std::is_permutation(seen.begin(), seen.end(), expected.begin(), expected.end()))
        << "seed " << GetParam();
  }
}

TEST_P(PlanProperty, RunsInOrderReachTheTapesLiveSetAndEveryInstantTellsTheTruth) {
  const Tape tape = random_tape(GetParam(), 3000, 1 + GetParam() % 7, 100);
  for (const Order order : {Order::serial, Order::total}) {
    const Plan plan = compile(tape, order);
    NaiveEngine engine;
    std::vector<std::size_t> done(plan.header().thread_count);
    std::size_t next = 0;
    std::uint64_t ops = 0;
    std::uint64_t peak = 0;
    const auto instants = plan.instants();
    for (std::size_t r = 0; r <= plan.runs().size(); ++r) {
      for (; next < instants.size() && instants[next].run == r; ++next) {
        EXPECT_EQ(instants[next].op_index, ops);
        EXPECT_EQ(instants[next].requested_bytes, engine.bytes()) << "seed " << GetParam();
        EXPECT_EQ(instants[next].live_objects, engine.objects());
      }
      if (r == plan.runs().size()) {
        break;
      }
      const PlanRun run = plan.runs()[r];
      for (std::uint32_t i = 0; i < run.op_count; ++i, ++ops) {
        ASSERT_NO_FATAL_FAILURE(engine.execute(plan.ops(run.thread)[done[run.thread]++]))
            << "seed " << GetParam();
        peak = std::max(peak, engine.bytes());
      }
    }
    EXPECT_EQ(next, instants.size());
    EXPECT_EQ(peak, plan.header().peak_requested_bytes);
    EXPECT_EQ(engine.sizes(), live_sizes(tape)) << "seed " << GetParam();
  }
}

TEST_P(PlanProperty, AnyInterleavingThatObeysTheWaitsNeitherSticksNorBreaksASlot) {
  const Tape tape = random_tape(GetParam(), 2000, 2 + GetParam() % 6, 60);
  const Plan plan = compile(tape, Order::deps);
  EXPECT_EQ(plan.header().slot_count, plan.header().peak_live_objects);
  std::mt19937_64 random(GetParam() + 1000);
  for (int schedule = 0; schedule < 10; ++schedule) {
    NaiveEngine engine;
    const std::uint32_t threads = plan.header().thread_count;
    std::vector<std::uint64_t> done(threads);
    std::vector<std::uint64_t> published(threads);  // what the others may know
    std::uint32_t favourite = 0;
    for (std::uint64_t left = plan.header().op_count; left != 0;) {
      // Mostly one thread for a long while, as a scheduler would; whoever cannot go on, yields.
      favourite = random() % 16 == 0 ? static_cast<std::uint32_t>(random() % threads) : favourite;
      bool moved = false;
      for (std::uint32_t k = 0; k < threads && !moved; ++k) {
        const std::uint32_t t = (favourite + k) % threads;
        const auto mine = plan.ops(t);
        if (done[t] == mine.size()) {
          continue;
        }
        const PlanOp& op = mine[done[t]];
        if (op.code == OpCode::wait) {
          moved = published[op.slot] >= op.size_bytes;
        } else {
          ASSERT_NO_FATAL_FAILURE(engine.execute(op)) << "seed " << GetParam() << " schedule " << schedule;
          moved = true;
        }
        if (moved) {
          ++done[t];
          published[t] = (op.flags & op_publish) != 0 ? done[t] : published[t];
          --left;
        }
      }
      ASSERT_TRUE(moved) << "stuck: seed " << GetParam() << " schedule " << schedule;
    }
    EXPECT_EQ(engine.sizes(), live_sizes(tape)) << "seed " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlanProperty, testing::Range(1U, 41U));

}  // namespace
}  // namespace heaptape::replayer
