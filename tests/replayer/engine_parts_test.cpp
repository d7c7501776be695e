// The engine's parts inside the test program, where the sanitizers see them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "replayer/engine/footprint.h"
#include "replayer/engine/ledger.h"
#include "replayer/engine/live_pages.h"
#include "replayer/engine/plan_check.h"
#include "replayer/engine/run.h"
#include "tests/replayer/engine_harness.h"
#include "tests/replayer/plan_events.h"
#include "tests/replayer/sanitized.h"

namespace heaptape::replayer::engine {
namespace {

// --- live pages -----------------------------------------------------------------------------

TEST(LivePages, AgreesWithASetOfPagesOverRandomBlocks) {
  for (const std::uint32_t shift : {12U, 21U}) {
    const std::uint64_t seed = 5 + shift;
    std::mt19937_64 random(seed);
    OwnMemory memory;
    LivePages pages;
    constexpr std::uint64_t most_blocks = 300;
    ASSERT_TRUE(pages.prepare(memory, shift, most_blocks));
    std::map<std::uint64_t, std::uint64_t> live;  // address, size
    for (int i = 0; i < 30'000; ++i) {
      if (live.size() < most_blocks && random() % 100 < 55) {
        const std::uint64_t address = 4096 + random() % (1U << 26U);
        const std::uint64_t size = random() % 20 == 0 ? random() % 5'000'000 : random() % 3'000;
        const auto after = live.lower_bound(address);
        const bool free_above = after == live.end() || address + size <= after->first;
        const bool free_below =
            after == live.begin() || std::prev(after)->first + std::prev(after)->second <= address;
        if (!free_above || !free_below || live.contains(address)) continue;
        live[address] = size;
        pages.add(reinterpret_cast<void*>(address), size);
      } else if (!live.empty()) {
        auto victim = live.lower_bound(random() % (1U << 26U));
        if (victim == live.end()) victim = live.begin();
        pages.remove(reinterpret_cast<void*>(victim->first), victim->second);
        live.erase(victim);
      }
      if (i % 100 != 0) continue;
      std::set<std::uint64_t> expected;
      for (const auto& [address, size] : live) {
        if (size == 0) continue;
        for (std::uint64_t p = address >> shift; p <= (address + size - 1) >> shift; ++p) expected.insert(p);
      }
      ASSERT_EQ(pages.bytes(), expected.size() << shift) << "seed " << seed << ", step " << i;
    }
  }
}

// --- footprint ------------------------------------------------------------------------------

TEST(Footprint, CountsPrivateAndForeignSharedMemoryAndNotItsOwn) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's shadow of what is touched would be counted, too";
  OwnMemory memory;
  FootprintReader reader(memory);
  ASSERT_TRUE(reader.prepare(memory));
  constexpr std::size_t bytes = 64 * page_bytes;
  const Footprint exact_before = reader.exact();
  const Footprint cheap_before = reader.cheap();
  auto* const anonymous =
      static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* const shared =
      static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  void* const reserved = ::mmap(nullptr, 5 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(anonymous, MAP_FAILED);
  ASSERT_NE(shared, MAP_FAILED);
  std::memset(anonymous, 1, 10 * page_bytes);
  std::memset(shared, 1, 7 * page_bytes);
  // A read of untouched memory shows the one page of zeros, which is nobody's.
  ASSERT_EQ(*const_cast<volatile char*>(anonymous + 20 * page_bytes), 0);
  ASSERT_NE(memory.make(bytes, Touching::now), nullptr);
  const Footprint exact = reader.exact();
  const Footprint cheap = reader.cheap();
  EXPECT_EQ(exact.resident_bytes - exact_before.resident_bytes, 17 * page_bytes);
  EXPECT_EQ(exact.committed_bytes - exact_before.committed_bytes, bytes);
  EXPECT_EQ(exact.reserved_bytes - exact_before.reserved_bytes, 6 * bytes);
  EXPECT_EQ(cheap.committed_bytes - cheap_before.committed_bytes, bytes);
  if (cheap.method == FootprintMethod::pagemap_scan) {
    EXPECT_EQ(cheap.resident_bytes - cheap_before.resident_bytes, 17 * page_bytes);
  } else {
    EXPECT_GE(cheap.resident_bytes - cheap_before.resident_bytes, 17 * page_bytes);
  }
  ::munmap(anonymous, bytes);
  ::munmap(shared, bytes);
  ::munmap(reserved, 5 * bytes);
}

TEST(Footprint, DoesNotCountPagesThatAreFreeForTheTaking) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's shadow of what is touched would be counted, too";
  OwnMemory memory;
  FootprintReader reader(memory);
  ASSERT_TRUE(reader.prepare(memory));
  constexpr std::size_t pages = 4000;
  auto* const block = static_cast<char*>(
      ::mmap(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, pages * page_bytes);
  const Footprint before = reader.exact();
  ASSERT_EQ(::madvise(block, pages * page_bytes, MADV_FREE), 0);
  const Footprint after = reader.exact();
  // The kernel marks such pages in batches: some of the last are told late.
  EXPECT_GT(after.lazy_free_bytes, before.lazy_free_bytes + (pages - 200) * page_bytes);
  EXPECT_EQ(after.resident_bytes + after.lazy_free_bytes, before.resident_bytes + before.lazy_free_bytes);
  ::munmap(block, pages * page_bytes);
}

// --- plan check -----------------------------------------------------------------------------

class PlanCheck : public testing::Test {
 protected:
  PlanCheck() {
    GeneratedTape tape({.steps = 500, .threads = 3});
    const Plan plan = must_compile(tape, Order::deps);
    const auto* const bytes = reinterpret_cast<const char*>(&plan.header());
    block_.assign((plan.header().total_bytes + 7) / 8, 0);
    std::memcpy(block_.data(), bytes, plan.header().total_bytes);
  }
  [[nodiscard]] PlanHeader& header() { return *reinterpret_cast<PlanHeader*>(block_.data()); }
  [[nodiscard]] PlanOp& op(std::size_t index) {
    return reinterpret_cast<PlanOp*>(reinterpret_cast<char*>(block_.data()) + header().ops_offset)[index];
  }
  [[nodiscard]] PlanThread& thread(std::size_t index) {
    return reinterpret_cast<PlanThread*>(reinterpret_cast<char*>(block_.data()) +
                                         header().threads_offset)[index];
  }
  [[nodiscard]] bool accepted() {
    char text[200];
    Text message(text, sizeof text);
    PlanView view;
    Demand demand;
    const bool fine = check_plan(block_.data(), block_.size() * 8, view, demand, message);
    EXPECT_EQ(fine, text[0] == '\0') << text;
    return fine;
  }
  template <class Field, class Value>
  void expect_refused(Field& field, Value value) {
    const Field kept = field;
    field = static_cast<Field>(value);
    EXPECT_FALSE(accepted());
    field = kept;
    EXPECT_TRUE(accepted());
  }

  std::vector<std::uint64_t> block_;
};

TEST_F(PlanCheck, AcceptsWhatTheCompilerMakes) { EXPECT_TRUE(accepted()); }

TEST_F(PlanCheck, RefusesEveryContradiction) {
  ASSERT_TRUE(accepted());
  expect_refused(header().magic, 1);
  expect_refused(header().version, 99);
  expect_refused(header().order, 3);
  expect_refused(header().order, Order::serial);  // three threads
  expect_refused(header().thread_count, 0);
  expect_refused(header().thread_count, 1U << 30U);
  expect_refused(header().slot_count, 1);
  expect_refused(header().op_count, header().op_count + 1);
  expect_refused(header().op_count, ~std::uint64_t{0});
  expect_refused(header().total_bytes, std::uint64_t{1} << 60U);
  expect_refused(header().ops_offset, header().ops_offset + 1);
  expect_refused(header().ops_offset, ~std::uint64_t{0} - 15);
  expect_refused(header().instant_count, std::uint64_t{1} << 60U);
  expect_refused(thread(1).first_op, ~std::uint64_t{0});
  expect_refused(thread(1).op_count, ~std::uint64_t{0});
  expect_refused(op(3).code, 7);
  expect_refused(op(3).code, 0);
  expect_refused(op(3).slot, ~std::uint32_t{0});
}

// --- the loop in `deps`, under whichever sanitizer this is built with ----------------------

void* plain_aligned(std::size_t alignment, std::size_t size) {
  return std::aligned_alloc(alignment, round_up(size == 0 ? 1 : size, alignment));
}

const Candidate plain = {.malloc = std::malloc,
                         .calloc = std::calloc,
                         .aligned = plain_aligned,
                         .realloc = std::realloc,
                         .free = std::free};

// Slots and blocks pass between threads behind the plan's edges only: if one were missing, or the loop
// did not keep it, the thread sanitizer would see the race on the slot or on the block.
void run_deps(const Plan& plan, bool space, TouchMode touch) {
  const std::size_t threads = plan.threads().size();
  std::vector<void*> slots(plan.header().slot_count);
  std::vector<SlotSizes> sizes(slots.size());
  std::vector<Lane> lanes(threads);
  // The loop looks eight ops ahead: the plan must be followed by readable memory.
  std::vector<PlanOp> ops(plan.ops().begin(), plan.ops().end());
  ops.resize(ops.size() + 8);
  const Replay replay{.candidate = &plain, .slots = slots.data(), .lanes = lanes.data()};
  prepare_waiting();
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < threads; ++i) {
    Lane& lane = lanes[i];
    lane.thread = static_cast<std::uint32_t>(i);
    lane.begin = lane.next = ops.data() + plan.threads()[i].first_op;
    lane.end = lane.begin + plan.threads()[i].op_count;
  }
  for (Lane& lane : lanes) {
    workers.emplace_back([&] {
      if (space) {
        SlotLedger ledger(sizes.data(), nullptr);
        space_deps_loop(touch)(replay, lane, ledger, lane.begin, lane.end);
      } else {
        NoObserver none;
        timed_loop(touch, Order::deps)(replay, lane, none, lane.begin, lane.end);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::uint64_t skipped = 0;
  for (const Lane& lane : lanes) skipped += lane.skipped_ops + lane.failed_allocations + lane.misaligned;
  EXPECT_EQ(skipped, 0U);
  for (void* const block : slots) std::free(block);
}

TEST(DepsLoop, PassesSlotsBetweenThreadsOnlyBehindEdges) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const Tape tape = random_tape(seed, 4'000, 2 + seed % 7, 5 + seed * 4);
    format::VectorCursor events(tape.events());
    const Plan plan = must_compile(events, Order::deps);
    ASSERT_GT(plan.header().wait_count, 50U) << "seed " << seed;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    run_deps(plan, seed % 2 == 0, seed % 3 == 0 ? TouchMode::first : TouchMode::all);
  }
}

TEST(DepsLoop, SurvivesManyThreadsThatMostlyWait) {
  GeneratedTape tape({.seed = 9, .steps = 20'000, .threads = 32, .live_target = 40, .calls_per_run = 1});
  run_deps(must_compile(tape, Order::deps), false, TouchMode::first);
}

// --- gates ----------------------------------------------------------------------------------

TEST(Gate, HandsTheBatonRoundWithEverythingWrittenBefore) {
  constexpr std::size_t threads = 6;
  constexpr std::uint64_t rounds = 3'000;
  std::array<Gate, threads> gates;
  std::uint64_t counter = 0;  // plain: guarded by the baton
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      Waiting waiting;
      for (std::uint64_t round = 0; round < rounds; ++round) {
        gates[i].pass(waiting);
        EXPECT_EQ(counter, round * threads + i);
        ++counter;
        gates[(i + 1) % threads].open();
      }
    });
  }
  gates[0].open();
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(counter, threads * rounds);
}

}  // namespace
}  // namespace heaptape::replayer::engine
