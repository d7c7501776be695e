#include "replayer/engine/live_pages.h"

#include <bit>

namespace heaptape::replayer::engine {

bool LivePages::prepare(OwnMemory& memory, std::uint32_t page_shift, std::uint64_t peak_blocks) noexcept {
  shift_ = page_shift;
  // Two edge pages per block at most, and one block more while a realloc is under way.
  const std::size_t entries = std::bit_ceil((peak_blocks + 1) * 4);
  mask_ = entries - 1;
  table_ = static_cast<Entry*>(memory.make(entries * sizeof(Entry), Touching::on_demand));
  return table_ != nullptr;
}

std::size_t LivePages::home(std::uint64_t page) const noexcept {
  return ((page * 0x9E3779B97F4A7C15ULL) >> 20) & mask_;
}

std::size_t LivePages::find(std::uint64_t page) const noexcept {
  std::size_t at = home(page);
  while (table_[at].page_plus_one != 0 && table_[at].page_plus_one != page + 1) at = (at + 1) & mask_;
  return at;
}

void LivePages::enter(std::uint64_t page) noexcept {
  Entry& entry = table_[find(page)];
  if (entry.page_plus_one == 0) {
    entry = {.page_plus_one = page + 1, .blocks = 0};
    ++edges_;
  }
  ++entry.blocks;
}

void LivePages::leave(std::uint64_t page) noexcept {
  std::size_t hole = find(page);
  if (table_[hole].page_plus_one == 0 || --table_[hole].blocks != 0) return;
  --edges_;
  // Close the hole: later entries of the same stretch move up, unless that would pass their home.
  for (std::size_t at = (hole + 1) & mask_; table_[at].page_plus_one != 0; at = (at + 1) & mask_) {
    const std::size_t wanted = home(table_[at].page_plus_one - 1);
    if (((at - wanted) & mask_) >= ((at - hole) & mask_)) {
      table_[hole] = table_[at];
      hole = at;
    }
  }
  table_[hole] = {};
}

void LivePages::add(const void* block, std::uint64_t size_bytes) noexcept {
  if (size_bytes == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uint64_t first = address >> shift_;
  const std::uint64_t last = (address + size_bytes - 1) >> shift_;
  enter(first);
  if (first == last) return;
  enter(last);
  inner_ += last - first - 1;
}

void LivePages::remove(const void* block, std::uint64_t size_bytes) noexcept {
  if (size_bytes == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uint64_t first = address >> shift_;
  const std::uint64_t last = (address + size_bytes - 1) >> shift_;
  leave(first);
  if (first == last) return;
  leave(last);
  inner_ -= last - first - 1;
}

}  // namespace heaptape::replayer::engine
