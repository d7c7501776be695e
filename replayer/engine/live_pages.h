// How many pages of a given size hold at least one byte of a live block, kept as blocks come and go.
//
// Only a block's first and last page can be shared with other blocks, so only those are counted in
// a table; what lies between is arithmetic. Cost: two look-ups per block, whatever its size.
// Trusts that live blocks do not overlap; if they do, the count is too high, nothing else breaks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replayer/engine/own_memory.h"

namespace heaptape::replayer::engine {

class LivePages {
 public:
  // False: the system refused the table's memory.
  [[nodiscard]] bool prepare(OwnMemory& memory, std::uint32_t page_shift, std::uint64_t peak_blocks) noexcept;

  void add(const void* block, std::uint64_t size_bytes) noexcept;
  void remove(const void* block, std::uint64_t size_bytes) noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return (inner_ + edges_) << shift_; }

 private:
  struct Entry {
    std::uint64_t page_plus_one;  // 0: empty
    std::uint64_t blocks;
  };
  [[nodiscard]] std::size_t home(std::uint64_t page) const noexcept;
  [[nodiscard]] std::size_t find(std::uint64_t page) const noexcept;  // its place, or where it would go
  void enter(std::uint64_t page) noexcept;
  void leave(std::uint64_t page) noexcept;

  Entry* table_ = nullptr;  // open addressing, at most half full
  std::size_t mask_ = 0;
  std::uint32_t shift_ = 0;
  std::uint64_t inner_ = 0;
  std::uint64_t edges_ = 0;
};

}  // namespace heaptape::replayer::engine
