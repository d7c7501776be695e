// How much memory the process holds for the candidate, read from /proc without allocating.
//
// Counted: private anonymous mappings (the heap included) and shared mappings that the engine did
// not make. Not counted: the engine's own memory, the main thread's stack, files. The exact reading
// is smaps (milliseconds per hundred megabytes); the cheap one asks the page tables for presence
// and cannot see which pages are free for the taking (LazyFree).
// One reader at a time: it belongs to whoever holds the baton.
#pragma once

#include <cstdint>

#include "replayer/engine/own_memory.h"
#include "replayer/engine/protocol.h"

namespace heaptape::replayer::engine {

struct Footprint {
  std::uint64_t resident_bytes = 0;
  std::uint64_t lazy_free_bytes = 0;
  std::uint64_t committed_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  FootprintMethod method = FootprintMethod::none;
};

class FootprintReader {
 public:
  explicit FootprintReader(const OwnMemory& own) noexcept : own_(own) {}

  // Opens what it reads and gets its buffers. False: the system refuses; then nothing can be measured.
  [[nodiscard]] bool prepare(OwnMemory& memory) noexcept;

  [[nodiscard]] Footprint exact() noexcept;
  [[nodiscard]] Footprint cheap() noexcept;

 private:
  struct Area;
  [[nodiscard]] bool parse_area(const char* line, Area& area) const noexcept;
  [[nodiscard]] std::uint64_t present_bytes(std::uintptr_t begin, std::uintptr_t end) noexcept;
  [[nodiscard]] std::uint64_t scan_bytes(std::uintptr_t begin, std::uintptr_t end) noexcept;
  [[nodiscard]] std::uint64_t core_bytes(std::uintptr_t begin, std::uintptr_t end) noexcept;
  template <class Line>
  void for_each_line(int fd, Line&& line) noexcept;

  const OwnMemory& own_;
  char* text_ = nullptr;
  unsigned char* scratch_ = nullptr;
  int smaps_ = -1;
  int maps_ = -1;
  int pagemap_ = -1;
  bool can_scan_ = false;
};

}  // namespace heaptape::replayer::engine
