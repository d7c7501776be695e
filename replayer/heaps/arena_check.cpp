// Looking at an arena without changing it: walk, validate, statistics.
#include "replayer/heaps/arena.h"
#include "replayer/heaps/arena_layout.h"

namespace heaptape::heaps {

const char* problem_name(ArenaProblem problem) noexcept {
  switch (problem) {
    case ArenaProblem::none:
      return "none";
    case ArenaProblem::bad_block_size:
      return "bad block size";
    case ArenaProblem::wrong_previous_flag:
      return "wrong flag about the previous block";
    case ArenaProblem::wrong_footer:
      return "wrong footer";
    case ArenaProblem::free_neighbours:
      return "two free neighbours";
    case ArenaProblem::wrong_end:
      return "blocks do not end at the end";
    case ArenaProblem::free_block_in_no_list:
      return "free block in no list";
    case ArenaProblem::used_block_in_list:
      return "used block in a list";
    case ArenaProblem::block_in_wrong_list:
      return "block in the wrong list";
    case ArenaProblem::broken_links:
      return "broken links";
    case ArenaProblem::wrong_bitmap:
      return "wrong bitmap";
  }
  return "unknown";
}

// Sees the private parts; holds the lock as long as it lives.
class ArenaChecker {
 public:
  explicit ArenaChecker(const Arena& arena) noexcept : arena_(arena), guard_(arena) {}

  template <class Visit>
  void each_block(Visit&& visit) const noexcept {
    for (char* at = arena_.first_; at < arena_.end_; at += Arena::Block::at(at)->size_bytes())
      visit(*Arena::Block::at(at));
  }

  [[nodiscard]] ArenaProblem check() noexcept {
    if (const ArenaProblem problem = check_blocks(); problem != ArenaProblem::none) return problem;
    for (unsigned level = 0; level < arena_.levels_; ++level) {
      if (const ArenaProblem problem = check_level(level); problem != ArenaProblem::none) return problem;
    }
    if ((arena_.level_map_ >> (arena_.levels_ - 1)) > 1) return ArenaProblem::wrong_bitmap;
    return free_blocks_ == 0 ? ArenaProblem::none : ArenaProblem::free_block_in_no_list;
  }

 private:
  // Never looks outside of the arena, whatever the size words say.
  [[nodiscard]] ArenaProblem check_blocks() noexcept {
    bool previous_free = false;
    char* at = arena_.first_;
    while (at < arena_.end_) {
      Arena::Block& block = *Arena::Block::at(at);
      const std::size_t bytes = block.size_bytes();
      if (bytes < smallest_block_bytes || bytes > static_cast<std::size_t>(arena_.end_ - at))
        return ArenaProblem::bad_block_size;
      if (block.previous_is_free() != previous_free) return ArenaProblem::wrong_previous_flag;
      if (block.is_free()) {
        if (previous_free) return ArenaProblem::free_neighbours;
        if (block.footer() != bytes) return ArenaProblem::wrong_footer;
        ++free_blocks_;
      }
      previous_free = block.is_free();
      at += bytes;
    }
    const std::size_t sentinel = *reinterpret_cast<const std::size_t*>(arena_.end_);
    const bool right = sentinel == (previous_free ? Arena::Block::previous_free_flag : 0);
    return right ? ArenaProblem::none : ArenaProblem::wrong_end;
  }

  [[nodiscard]] ArenaProblem check_level(unsigned level) noexcept {
    const bool marked = ((arena_.level_map_ >> level) & 1U) != 0;
    if (marked != (arena_.step_maps_[level] != 0)) return ArenaProblem::wrong_bitmap;
    for (unsigned step = 0; step < SizeClass::steps; ++step) {
      const bool any = ((arena_.step_maps_[level] >> step) & 1U) != 0;
      Arena::Block* block = arena_.head(level, step);
      if (any != (block != nullptr)) return ArenaProblem::wrong_bitmap;
      Arena::Block* previous = nullptr;
      for (; block != nullptr; previous = block, block = block->next) {
        if (!arena_.owns(block) || block->previous != previous) return ArenaProblem::broken_links;
        if (!block->is_free()) return ArenaProblem::used_block_in_list;
        const SizeClass at = SizeClass::of(block->size_bytes());
        if (at.level != level || at.step != step) return ArenaProblem::block_in_wrong_list;
        if (free_blocks_-- == 0) return ArenaProblem::free_block_in_no_list;
      }
    }
    return ArenaProblem::none;
  }

  const Arena& arena_;
  const Arena::Guard guard_;
  std::size_t free_blocks_ = 0;  // seen in memory, not yet in a list
};

void Arena::walk(void (*visit)(void* context, const ArenaBlock& block), void* context) const noexcept {
  const ArenaChecker checker(*this);
  checker.each_block([&](Block& block) {
    visit(context, {.address = block.payload(),
                    .size_bytes = block.size_bytes() - word_bytes,
                    .used = !block.is_free()});
  });
}

ArenaProblem Arena::validate() const noexcept { return ArenaChecker(*this).check(); }

ArenaStatistics Arena::statistics() const noexcept {
  ArenaStatistics sum;
  sum.total_bytes = static_cast<std::size_t>(end_ - first_);
  const ArenaChecker checker(*this);
  checker.each_block([&](const Block& block) {
    const std::size_t bytes = block.size_bytes();
    if (block.is_free()) {
      ++sum.free_blocks;
      sum.free_bytes += bytes;
      if (bytes > sum.largest_free_bytes) sum.largest_free_bytes = bytes;
    } else {
      ++sum.used_blocks;
      sum.used_bytes += bytes;
    }
  });
  return sum;
}

}  // namespace heaptape::heaps
