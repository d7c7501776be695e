// An arena beside a simple model of what it must be: which blocks are live, where, and what is
// written in them. Every call checks what can be told from its result; check() validates the arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "replayer/heaps/arena.h"

namespace heaptape::heaps {

class ArenaModel {
 public:
  ArenaModel(std::size_t bytes, std::size_t offset, Locking locking)
      : memory_(new unsigned char[bytes + offset]),
        arena_(Arena::create(memory_.get() + offset, bytes, locking)) {}

  [[nodiscard]] Arena* arena() { return arena_; }
  [[nodiscard]] std::size_t blocks() const { return live_.size(); }
  // The first thing that was wrong; empty: nothing.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

  void allocate(std::size_t size_bytes) { entered(arena_->allocate(size_bytes), size_bytes, 16); }
  void allocate_aligned(std::size_t alignment, std::size_t size_bytes) {
    entered(arena_->allocate_aligned(alignment, size_bytes), size_bytes, alignment);
  }
  void allocate_zeroed(std::size_t size_bytes) {
    auto* const block = static_cast<unsigned char*>(arena_->allocate_zeroed(1, size_bytes));
    for (std::size_t i = 0; block != nullptr && i < size_bytes; ++i) {
      if (block[i] != 0) return complain("allocate_zeroed gave a byte that is not zero");
    }
    entered(block, size_bytes, 16);
  }
  void release(std::size_t which) {
    const auto victim = pick(which);
    expect_pattern(victim->first, victim->second.size_bytes, victim->second.seed);
    arena_->release(victim->first);
    live_.erase(victim);
  }
  void reallocate(std::size_t which, std::size_t size_bytes) {
    const auto victim = pick(which);
    const Live old = victim->second;
    auto* const block = static_cast<unsigned char*>(arena_->reallocate(victim->first, size_bytes));
    if (block == nullptr) return expect_pattern(victim->first, old.size_bytes, old.seed);
    expect_pattern(block, old.size_bytes < size_bytes ? old.size_bytes : size_bytes, old.seed);
    live_.erase(victim);
    entered(block, size_bytes, 16);
  }
  void release_all() {
    while (!live_.empty()) release(0);
  }
  void check() {
    if (const ArenaProblem problem = arena_->validate(); problem != ArenaProblem::none)
      complain(problem_name(problem));
  }
  // The arena's own account against the model's.
  void check_statistics() {
    const ArenaStatistics statistics = arena_->statistics();
    if (statistics.used_blocks != live_.size()) complain("statistics count other live blocks");
    if (statistics.used_bytes + statistics.free_bytes != statistics.total_bytes)
      complain("used and free bytes do not add up");
  }

 private:
  struct Live {
    std::size_t size_bytes;
    unsigned char seed;
  };
  using Blocks = std::map<unsigned char*, Live>;

  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }
  [[nodiscard]] Blocks::iterator pick(std::size_t which) {
    // By address: a jump into the middle, then on to the next block.
    const std::size_t span = static_cast<std::size_t>(live_.rbegin()->first - live_.begin()->first) + 1;
    return live_.lower_bound(live_.begin()->first + which % span);
  }
  void entered(void* result, std::size_t size_bytes, std::size_t alignment) {
    if (result == nullptr) return;
    auto* const block = static_cast<unsigned char*>(result);
    if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) complain("a block is misaligned");
    if (!arena_->owns(block) || !arena_->owns(block + (size_bytes == 0 ? 0 : size_bytes - 1)))
      complain("a block lies outside of the arena");
    if (arena_->usable_size(block) < size_bytes) complain("usable size is below the requested size");
    const auto after = live_.lower_bound(block);
    if (after != live_.end() && block + (size_bytes == 0 ? 1 : size_bytes) > after->first)
      complain("a block reaches into the next");
    if (after != live_.begin()) {
      const auto before = std::prev(after);
      if (before->first + (before->second.size_bytes == 0 ? 1 : before->second.size_bytes) > block)
        complain("a block reaches into the previous one");
    }
    const auto seed = static_cast<unsigned char>(++seed_ | 1U);
    std::memset(block, seed, size_bytes);
    live_[block] = {size_bytes, seed};
  }
  void expect_pattern(const unsigned char* block, std::size_t size_bytes, unsigned char seed) {
    for (std::size_t i = 0; i < size_bytes; ++i) {
      if (block[i] != seed) return complain("a live block was written to by somebody else");
    }
  }

  std::unique_ptr<unsigned char[]> memory_;
  Arena* arena_;
  Blocks live_;
  unsigned seed_ = 0;
  std::string complaint_;
};

}  // namespace heaptape::heaps
