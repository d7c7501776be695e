#include "replayer/heaps/arena.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "tests/replayer/heaps_arena_model.h"
#include "tests/replayer/sanitized.h"

namespace heaptape::heaps {
namespace {

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

class ArenaTest : public testing::Test {
 protected:
  static constexpr std::size_t bytes = std::size_t{4} << 20U;
  void expect_valid() { EXPECT_STREQ(problem_name(arena_->validate()), "none"); }

  std::vector<unsigned char> memory_ = std::vector<unsigned char>(bytes);
  Arena* arena_ = Arena::create(memory_.data(), memory_.size(), Locking::none);
};

TEST_F(ArenaTest, IsOneFreeBlockAtFirst) {
  ASSERT_NE(arena_, nullptr);
  const ArenaStatistics statistics = arena_->statistics();
  EXPECT_EQ(statistics.free_blocks, 1U);
  EXPECT_EQ(statistics.used_blocks, 0U);
  EXPECT_EQ(statistics.free_bytes, statistics.total_bytes);
  EXPECT_GT(statistics.total_bytes, bytes - 8192);
  EXPECT_EQ(statistics.external_fragmentation(), 0.0);
  expect_valid();
}

TEST_F(ArenaTest, RefusesMemoryThatIsTooSmallAndWorksInTheSmallestThatIsNot) {
  EXPECT_EQ(Arena::create(nullptr, bytes, Locking::none), nullptr);
  bool made_one = false;
  for (std::size_t size = 0; size < 16'384; size += 7) {
    Arena* const small = Arena::create(memory_.data() + size % 16, size, Locking::none);
    if (small == nullptr) {
      ASSERT_FALSE(made_one) << size;
      continue;
    }
    made_one = made_one || size > 4096;
    ASSERT_EQ(small->validate(), ArenaProblem::none) << size;
    void* const block = small->allocate(1);
    ASSERT_NE(block, nullptr) << size;
    ASSERT_LE(static_cast<unsigned char*>(block) + 1, memory_.data() + size % 16 + size) << size;
    small->release(block);
    ASSERT_EQ(small->statistics().free_blocks, 1U) << size;
  }
  EXPECT_TRUE(made_one);
}

TEST_F(ArenaTest, ReturnsNullForSizesThatOverflowAndStaysIntact) {
  for (const std::size_t size : {most, most - 1, most - 7, most - 8, most - 15, most - 16, most / 2,
                                 most / 2 + 1, most / 4, most / 4 + 1, bytes, bytes - 1}) {
    EXPECT_EQ(arena_->allocate(size), nullptr) << size;
    EXPECT_EQ(arena_->allocate_aligned(64, size), nullptr) << size;
    EXPECT_EQ(arena_->allocate_aligned(std::size_t{1} << 20U, size), nullptr) << size;
    EXPECT_EQ(arena_->allocate_zeroed(1, size), nullptr) << size;
    void* const block = arena_->allocate(100);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(arena_->reallocate(block, size), nullptr) << size;
    arena_->release(block);
    expect_valid();
  }
  EXPECT_EQ(arena_->allocate_zeroed(most / 2, 3), nullptr);
  EXPECT_EQ(arena_->allocate_zeroed(std::size_t{1} << (sizeof(std::size_t) * 4),
                                    std::size_t{1} << (sizeof(std::size_t) * 4)),
            nullptr);
  for (const std::size_t alignment : {most, most / 2 + 1, most / 4 + 1}) {
    EXPECT_EQ(arena_->allocate_aligned(alignment, 1), nullptr) << alignment;
  }
  EXPECT_EQ(arena_->statistics().free_blocks, 1U);
  expect_valid();
}

TEST_F(ArenaTest, RefusesAlignmentsThatAreNotPowersOfTwo) {
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{4097}})
    EXPECT_EQ(arena_->allocate_aligned(alignment, 8), nullptr) << alignment;
}

TEST_F(ArenaTest, AlignsToAnyPowerOfTwoUpToAMebibyte) {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 20U; alignment *= 2) {
    void* const first = arena_->allocate_aligned(alignment, 33);
    void* const between = arena_->allocate(1);
    void* const second = arena_->allocate_aligned(alignment, 4097);
    ASSERT_NE(first, nullptr);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % alignment, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % alignment, 0U);
    expect_valid();
    arena_->release(first);
    arena_->release(second);
    arena_->release(between);
    EXPECT_EQ(arena_->statistics().free_blocks, 1U) << alignment;
  }
}

TEST_F(ArenaTest, GivesOutAllOfItsMemoryThenNullThenAllOfItAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks;
    while (void* const block = arena_->allocate(1000)) blocks.push_back(block);
    // 1,000 bytes and the size word are 1,008.
    EXPECT_EQ(blocks.size(), arena_->statistics().total_bytes / 1008);
    expect_valid();
    EXPECT_EQ(arena_->reallocate(blocks.front(), 5000), nullptr);
    expect_valid();
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(static_cast<unsigned>(round)));
    for (void* const block : blocks) arena_->release(block);
    EXPECT_EQ(arena_->statistics().free_blocks, 1U);
    expect_valid();
  }
}

TEST_F(ArenaTest, GivesOutItsLargestFreeBlockWhole) {
  const std::size_t whole = arena_->statistics().largest_free_bytes;
  EXPECT_EQ(arena_->allocate(whole), nullptr);
  void* const block = arena_->allocate(whole - sizeof(std::size_t));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(arena_->statistics().free_bytes, 0U);
  expect_valid();
  arena_->release(block);
  expect_valid();
}

TEST_F(ArenaTest, ReallocatesInPlaceWhenTheNextBlockIsFree) {
  auto* const block = static_cast<unsigned char*>(arena_->allocate(100));
  std::memset(block, 7, 100);
  EXPECT_EQ(arena_->reallocate(block, 50'000), block);
  EXPECT_EQ(block[99], 7);
  EXPECT_EQ(arena_->reallocate(block, 10), block);
  void* const neighbour = arena_->allocate(10);
  auto* const moved = static_cast<unsigned char*>(arena_->reallocate(block, 500));
  EXPECT_NE(moved, block);
  EXPECT_EQ(moved[9], 7);
  arena_->release(neighbour);
  arena_->release(moved);
  EXPECT_EQ(arena_->statistics().free_blocks, 1U);
  expect_valid();
}

TEST_F(ArenaTest, TreatsNullAndZeroAsMallocDoes) {
  arena_->release(nullptr);
  EXPECT_EQ(arena_->usable_size(nullptr), 0U);
  void* const none = arena_->allocate(0);
  void* const other = arena_->allocate(0);
  EXPECT_NE(none, nullptr);
  EXPECT_NE(none, other);
  void* const grown = arena_->reallocate(nullptr, 40);
  EXPECT_NE(grown, nullptr);
  EXPECT_EQ(arena_->reallocate(grown, 0), grown);
  expect_valid();
}

TEST_F(ArenaTest, WalksEveryBlockInOrderOfAddress) {
  void* const first = arena_->allocate(24);
  void* const second = arena_->allocate(100);
  void* const third = arena_->allocate(24);
  arena_->release(second);
  std::vector<ArenaBlock> seen;
  arena_->walk([](void* list,
                  const ArenaBlock& block) { static_cast<std::vector<ArenaBlock>*>(list)->push_back(block); },
               &seen);
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].address, first);
  EXPECT_EQ(seen[0].size_bytes, 24U);
  EXPECT_TRUE(seen[0].used);
  EXPECT_EQ(seen[1].address, second);
  EXPECT_FALSE(seen[1].used);
  EXPECT_EQ(seen[2].address, third);
  EXPECT_FALSE(seen[3].used);
  const ArenaStatistics statistics = arena_->statistics();
  EXPECT_EQ(statistics.used_blocks, 2U);
  EXPECT_GT(statistics.external_fragmentation(), 0.0);
}

TEST_F(ArenaTest, ForgetsEverythingAtReset) {
  for (int i = 0; i < 100; ++i) EXPECT_NE(arena_->allocate(static_cast<std::size_t>(i) * 50), nullptr);
  arena_->reset();
  EXPECT_EQ(arena_->statistics().free_blocks, 1U);
  expect_valid();
}

TEST_F(ArenaTest, NoticesDamage) {
  auto* const block = static_cast<unsigned char*>(arena_->allocate(100));
  void* const victim = arena_->allocate(100);
  void* const last = arena_->allocate(100);
  // An overrun of sixteen bytes over the next block's size word, with several values.
  const std::size_t usable = arena_->usable_size(block);
  std::array<unsigned char, 16> saved{};
  std::memcpy(saved.data(), block + usable, saved.size());
  for (const int value : {0x00, 0x01, 0x41, 0xFF}) {
    std::memset(block + usable, value, 8);
    EXPECT_NE(arena_->validate(), ArenaProblem::none) << value;
    std::memcpy(block + usable, saved.data(), saved.size());
    expect_valid();
  }
  // A write after release: over the links, and over the size at the end.
  arena_->release(victim);
  std::memset(victim, 0x77, 16);
  EXPECT_EQ(arena_->validate(), ArenaProblem::broken_links);
  arena_->reset();
  static_cast<void>(last);
}

// A million random calls, every invariant checked after each; fewer where each costs twenty times more.
TEST(ArenaModelled, AgreesWithASimpleModelOverAMillionCalls) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    ArenaModel model((24U << 10U) + below(64U << 10U), below(64), Locking::none);
    ASSERT_NE(model.arena(), nullptr);
    for (int i = 0; i < (replayer::sanitized ? 25'000 : 250'000); ++i) {
      // Most sizes are small; some fill much of the arena.
      const std::size_t size = below(8) == 0 ? below(20'000) : below(4) == 0 ? below(2'000) : below(200);
      const std::uint64_t dice = below(100);
      if (model.blocks() == 0 || dice < 40) {
        model.allocate(size);
      } else if (dice < 47) {
        model.allocate_aligned(std::size_t{1} << below(14), size);
      } else if (dice < 50) {
        model.allocate_zeroed(size);
      } else if (dice < 70) {
        model.reallocate(below(1U << 20U), size);
      } else {
        model.release(below(1U << 20U));
      }
      model.check();
      ASSERT_EQ(model.complaint(), "") << "seed " << seed << ", call " << i;
      if (i % 1000 == 0) model.check_statistics();
      if (below(20'000) == 0) model.release_all();
    }
    model.release_all();
    model.check_statistics();
    ASSERT_EQ(model.complaint(), "") << "seed " << seed;
    EXPECT_EQ(model.arena()->statistics().free_blocks, 1U) << "seed " << seed;
  }
}

TEST(ArenaShared, StaysIntactUnderThreadsThatExchangeBlocks) {
  constexpr int threads = 4;
  constexpr int calls = replayer::sanitized ? 10'000 : 40'000;
  std::vector<unsigned char> memory(std::size_t{2} << 20U);
  Arena* const arena = Arena::create(memory.data(), memory.size(), Locking::shared);
  ASSERT_NE(arena, nullptr);
  std::array<std::atomic<unsigned char*>, 64> shelf{};
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < calls; ++i) {
      const std::size_t size = random() % 3000 + 1;
      void* fresh = random() % 8 == 0 ? arena->allocate_aligned(256, size) : arena->allocate(size);
      auto* block = static_cast<unsigned char*>(fresh);
      if (block != nullptr) {
        std::memset(block, static_cast<int>(size & 0x7FU), size);
        block[0] = static_cast<unsigned char>(size & 0x7FU);
        if (random() % 4 == 0) {
          auto* const larger = static_cast<unsigned char*>(arena->reallocate(block, size + 100));
          if (larger != nullptr) block = larger;
        }
        if (arena->usable_size(block) < size) ++wrong;
        for (std::size_t at = 1; at < size; ++at) {
          if (block[at] != block[0]) {
            ++wrong;
            break;
          }
        }
      }
      arena->release(shelf[random() % shelf.size()].exchange(block));
      if (random() % 1000 == 0 && arena->validate() != ArenaProblem::none) ++wrong;
    }
  };
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i) workers.emplace_back(work, i + 1);
  for (std::thread& worker : workers) worker.join();
  for (auto& block : shelf) arena->release(block.load());
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(arena->validate(), ArenaProblem::none);
  EXPECT_EQ(arena->statistics().free_blocks, 1U);
}

}  // namespace
}  // namespace heaptape::heaps
