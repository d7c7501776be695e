// How an arena's blocks lie in memory, and which free list a size belongs to. Internal.
//
// A block is a size word followed by its payload, up to the next block's size word. A free block
// holds the links of its list at the beginning of its payload and repeats its size in the last word,
// so that the block behind it finds its beginning. Sizes are multiples of 16, which leaves bits for
// two flags: this block is free; the block before it is free.
#pragma once

#include <bit>
#include <cstddef>

#include "replayer/heaps/arena.h"

namespace heaptape::heaps {

inline constexpr std::size_t word_bytes = sizeof(std::size_t);
inline constexpr std::size_t granule_bytes = Arena::default_alignment;
// Size word, two links, the size again.
inline constexpr std::size_t smallest_block_bytes =
    (4 * word_bytes + granule_bytes - 1) / granule_bytes * granule_bytes;

struct Arena::Block {
  static constexpr std::size_t free_flag = 1;
  static constexpr std::size_t previous_free_flag = 2;
  static constexpr std::size_t flags = granule_bytes - 1;

  std::size_t word;
  Block* next;  // in a free block only, as is the next line
  Block* previous;

  [[nodiscard]] std::size_t size_bytes() const noexcept { return word & ~flags; }
  [[nodiscard]] bool is_free() const noexcept { return (word & free_flag) != 0; }
  [[nodiscard]] bool previous_is_free() const noexcept { return (word & previous_free_flag) != 0; }
  void set_size(std::size_t bytes) noexcept { word = bytes | (word & flags); }

  [[nodiscard]] char* begin() noexcept { return reinterpret_cast<char*>(this); }
  [[nodiscard]] void* payload() noexcept { return begin() + word_bytes; }
  [[nodiscard]] Block* after() noexcept { return reinterpret_cast<Block*>(begin() + size_bytes()); }
  [[nodiscard]] std::size_t& footer() noexcept {
    return *reinterpret_cast<std::size_t*>(begin() + size_bytes() - word_bytes);
  }
  // Only if previous_is_free().
  [[nodiscard]] Block* before() noexcept {
    const std::size_t its_size = *reinterpret_cast<std::size_t*>(begin() - word_bytes);
    return reinterpret_cast<Block*>(begin() - its_size);
  }

  static Block* at(char* address) noexcept { return reinterpret_cast<Block*>(address); }
  static Block* of(const void* payload) noexcept {
    return reinterpret_cast<Block*>(static_cast<char*>(const_cast<void*>(payload)) - word_bytes);
  }
};

// The free lists: level 0 holds sizes below 512 in exact steps of 16; each further level one power of
// two in 32 equal steps.
struct SizeClass {
  static constexpr unsigned step_bits = 5;
  static constexpr unsigned steps = 1U << step_bits;
  static constexpr unsigned granule_bits = static_cast<unsigned>(std::countr_zero(granule_bytes));
  static constexpr unsigned first_level_bits = step_bits + granule_bits;  // below: level 0

  unsigned level;
  unsigned step;

  static constexpr unsigned log2(std::size_t value) noexcept {
    return static_cast<unsigned>(std::bit_width(value)) - 1;
  }
  static constexpr SizeClass of(std::size_t bytes) noexcept {
    if (bytes < (std::size_t{1} << first_level_bits)) {
      return {.level = 0, .step = static_cast<unsigned>(bytes >> granule_bits)};
    }
    const unsigned power = log2(bytes);
    return {.level = power - first_level_bits + 1,
            .step = static_cast<unsigned>(bytes >> (power - step_bits)) & (steps - 1)};
  }
  // The first class all of whose blocks are large enough. May lie beyond the last level.
  static constexpr SizeClass holding(std::size_t bytes) noexcept {
    if (bytes < (std::size_t{1} << first_level_bits)) return of(bytes);
    return of(bytes + (std::size_t{1} << (log2(bytes) - step_bits)) - 1);
  }
};

// The size of the block for a request, overhead included; 0: there is no such size.
constexpr std::size_t block_bytes_for(std::size_t requested_bytes) noexcept {
  constexpr std::size_t largest = ~std::size_t{0} / 4;
  if (requested_bytes > largest) return 0;
  const std::size_t bytes = (requested_bytes + word_bytes + granule_bytes - 1) & ~(granule_bytes - 1);
  return bytes < smallest_block_bytes ? smallest_block_bytes : bytes;
}

class Arena::Guard {
 public:
  explicit Guard(const Arena& arena) noexcept
      : lock_(arena.locking_ == Locking::shared ? &arena.lock_ : nullptr) {
    if (lock_ != nullptr) lock_->acquire();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (lock_ != nullptr) lock_->release();
  }

 private:
  Lock* lock_;
};

}  // namespace heaptape::heaps
