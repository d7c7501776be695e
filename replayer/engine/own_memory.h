// The engine's own memory: shared memfd mappings, so that nothing of it is private anonymous and
// can be mistaken for the candidate's.
//
// Used by the main thread only, before the start barrier; the list of ranges is read afterwards by
// whoever takes a footprint. Nothing is ever given back: the process ends after one replay.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heaptape::replayer::engine {

inline constexpr std::size_t page_bytes = 4096;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

enum class Touching : std::uint8_t {
  now,        // every page present before the replay starts
  on_demand,  // sparse tables; their pages are shared memory and so never counted either
};

class OwnMemory {
 public:
  // Zeroed shared memory, page aligned; null if the system refuses.
  [[nodiscard]] void* make(std::size_t size_bytes, Touching touching) noexcept;

  // `count` windows of addresses, `stride_bytes` apart and aligned to `alignment_bytes` (which divides
  // the stride). Each shows one small piece of shared memory of its own, `chunk_bytes` (which divide
  // the stride), again and again. Sizes in whole pages; present from the start. Null on refusal.
  [[nodiscard]] char* make_windows(std::size_t count, std::size_t stride_bytes, std::size_t chunk_bytes,
                                   std::size_t alignment_bytes) noexcept;

  // The file's first `size_bytes`, shared, with a readable page behind them; null on refusal.
  [[nodiscard]] void* map_file(int fd, std::size_t size_bytes, bool writable) noexcept;

  // Is [begin, end) inside memory made here?
  [[nodiscard]] bool owns(std::uintptr_t begin, std::uintptr_t end) const noexcept;

 private:
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
  };
  void* remember(void* address, std::size_t size_bytes) noexcept;

  static constexpr std::size_t capacity = 64;
  Range ranges_[capacity] = {};
  std::size_t count_ = 0;
};

// Writes every page of the program's own .data and .bss, so that no later store makes one private.
void touch_static_memory() noexcept;

}  // namespace heaptape::replayer::engine
