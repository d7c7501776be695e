// A heap in one fixed block of memory that the caller hands over.
//
// Guarantees
// - Never asks the system for anything; all its state lies in the block. An exhausted arena returns
//   null and stays intact.
// - Constant worst-case time for allocate and release: two-level segregated fit (M. Masmano and
//   others, "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004) over boundary
//   tags. A released block is merged with its free neighbours at once, so there are never two free
//   blocks side by side.
// - Results are aligned to `default_alignment`, or to the power of two asked for. A request for 0
//   bytes gets a block of its own.
// Overhead: one word per live block, sizes in steps of 16 bytes, at least 32; about 12 KiB for the
// tables of a large arena.
// Trusts: the caller releases only live blocks of this arena, and writes only inside of them.
// Threads: with Locking::shared any thread may call anything; one lock is held except while
// reallocate copies. With Locking::none one thread at a time.
// Builds without exceptions, RTTI or libstdc++; depends on nothing else of the project.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replayer/heaps/lock.h"

namespace heaptape::heaps {

enum class Locking : std::uint8_t { none, shared };

// What validate() finds; the name says which invariant is broken.
enum class ArenaProblem : std::uint8_t {
  none,
  bad_block_size,         // not a multiple of 16, too small, or beyond the end
  wrong_previous_flag,    // a block contradicts its predecessor about whether that is free
  wrong_footer,           // a free block's size at its end differs from that at its beginning
  free_neighbours,        // two free blocks side by side were not merged
  wrong_end,              // the blocks do not add up to the arena
  free_block_in_no_list,  // or in more than one
  used_block_in_list,
  block_in_wrong_list,
  broken_links,
  wrong_bitmap,
};
[[nodiscard]] const char* problem_name(ArenaProblem problem) noexcept;

struct ArenaStatistics {
  std::size_t total_bytes = 0;  // what blocks can use, tables not counted
  std::size_t used_bytes = 0;   // in live blocks, their overhead included
  std::size_t free_bytes = 0;
  std::size_t largest_free_bytes = 0;  // the largest request that can succeed is a word less
  std::size_t used_blocks = 0;
  std::size_t free_blocks = 0;
  // 1 - largest free / all free: 0 if all free memory is one block, or if there is none.
  [[nodiscard]] double external_fragmentation() const noexcept {
    if (free_bytes == 0) return 0.0;
    return 1.0 - static_cast<double>(largest_free_bytes) / static_cast<double>(free_bytes);
  }
};

struct ArenaBlock {
  void* address;           // what allocate returned, or would return
  std::size_t size_bytes;  // usable
  bool used;
};

class Arena {
 public:
  static constexpr std::size_t default_alignment = 16;

  // Makes an arena in `memory`, which must stay there and untouched by others while it is used.
  // There is nothing to destroy: the caller takes the memory back. Null: too small (below 4 KiB or so).
  [[nodiscard]] static Arena* create(void* memory, std::size_t size_bytes, Locking locking) noexcept;

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() = delete;

  [[nodiscard]] void* allocate(std::size_t size_bytes) noexcept;
  // `alignment_bytes`: a power of two; anything else returns null. Needs a free block that is larger by
  // the alignment; what is left before and behind the result is free again.
  [[nodiscard]] void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes) noexcept;
  // Zeroed; null if count * size_bytes overflows.
  [[nodiscard]] void* allocate_zeroed(std::size_t count, std::size_t size_bytes) noexcept;
  // In place when shrinking, or when the next block is free and large enough; keeps the contents,
  // but not an alignment above the default if it moves. Null: the old block is unchanged. A null
  // block allocates.
  [[nodiscard]] void* reallocate(void* block, std::size_t size_bytes) noexcept;
  void release(void* block) noexcept;  // null is allowed

  // How much may be written there: at least what was asked for.
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept;
  // Does the address lie in the part that blocks come from?
  [[nodiscard]] bool owns(const void* address) const noexcept;

  // Back to one free block; all live blocks are gone.
  void reset() noexcept;

  // Calls `visit` for every block in address order, under the lock: it must not call the arena.
  void walk(void (*visit)(void* context, const ArenaBlock& block), void* context) const noexcept;
  // Checks every invariant; time grows with the number of blocks.
  [[nodiscard]] ArenaProblem validate() const noexcept;
  [[nodiscard]] ArenaStatistics statistics() const noexcept;

  struct Block;  // arena_layout.h

 private:
  friend class ArenaChecker;
  class Guard;

  Arena(char* tables, char* first, char* end, unsigned levels, Locking locking) noexcept;

  void fill_with_one_free_block() noexcept;
  [[nodiscard]] Block* take(std::size_t block_bytes) noexcept;
  [[nodiscard]] Block* take_from_own_class(std::size_t block_bytes) noexcept;
  void* use(Block* block, std::size_t block_bytes) noexcept;
  void give_back(Block* block) noexcept;
  [[nodiscard]] bool grow_in_place(Block* block, std::size_t block_bytes) noexcept;
  void cut(Block* block, std::size_t block_bytes) noexcept;
  void link(Block* block) noexcept;
  void unlink(Block* block) noexcept;
  [[nodiscard]] Block*& head(unsigned level, unsigned step) const noexcept;

  mutable Lock lock_;
  const Locking locking_;
  const unsigned levels_;
  char* const first_;         // the first block
  char* const end_;           // the sentinel: a used block of size 0
  std::size_t level_map_;     // bit l: level l has a free block
  std::uint32_t* step_maps_;  // [level], bit s: its step s has a free block
  Block** heads_;             // [level * steps + step]
};

}  // namespace heaptape::heaps
