// Plans in order `deps` run by real threads over plain, unsynchronised slots: only the plan's waits
// keep the threads apart. Each use checks what it finds; under ThreadSanitizer (preset tsan) a
// missing edge is a data race even if the values happen to be right.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "replayer/plan/compile.h"
#include "replayer/plan/verify.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

struct alignas(64) Published {
  // Stored with release by its thread after an op_publish, loaded with acquire by who waits for it.
  std::atomic<std::uint64_t> done{0};
};

class Runner {
 public:
  explicit Runner(const Plan& plan)
      : plan_(plan), slots_(plan.header().slot_count, 0), published_(plan.header().thread_count) {}

  // How often a slot was not in the state that its operation needs.
  std::uint64_t run() {
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < plan_.header().thread_count; ++t) {
      threads.emplace_back([this, t] { run_thread(t); });
    }
    for (std::thread& t : threads) {
      t.join();
    }
    return wrong_;
  }
  [[nodiscard]] std::size_t live() const {
    std::size_t n = 0;
    for (const std::uint64_t s : slots_) {
      n += s != 0 ? 1U : 0U;
    }
    return n;
  }

 private:
  void run_thread(std::uint32_t thread) {
    const auto ops = plan_.ops(thread);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < ops.size(); ++i) {
      const PlanOp& op = ops[i];
      if (op.code == OpCode::wait) {
        while (published_[op.slot].done.load(std::memory_order_acquire) < op.size_bytes) {
          std::this_thread::yield();
        }
      } else {
        const bool needs_live =
            op.code == OpCode::free || (op.code == OpCode::realloc && (op.flags & op_realloc_null) == 0);
        wrong += (slots_[op.slot] != 0) != needs_live ? 1U : 0U;
        slots_[op.slot] = op.code == OpCode::free ? 0 : op.size_bytes + 1;
      }
      if ((op.flags & op_publish) != 0) {
        published_[thread].done.store(i + 1, std::memory_order_release);
      }
    }
    wrong_ += wrong;
  }

  const Plan& plan_;
  std::vector<std::uint64_t> slots_;  // plain on purpose
  std::vector<Published> published_;
  std::atomic<std::uint64_t> wrong_{0};  // summed up at each thread's end, read after the joins
};

TEST(PlanThreads, ThatHandBlocksOverNeverMeetInASlot) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Tape tape = random_tape(seed, 20'000, 4, 100);
    format::VectorCursor cursor(tape.events());
    const auto plan = compile_plan(cursor, {.order = Order::deps});
    ASSERT_TRUE(plan && verify_plan(*plan)) << "seed " << seed;
    Runner runner(*plan);
    EXPECT_EQ(runner.run(), 0U) << "seed " << seed;
    EXPECT_EQ(runner.live(), tape.live().size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace heaptape::replayer
