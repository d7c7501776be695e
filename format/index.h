// The index of a tape: one entry per block before the footer, so that a reader knows where every
// block is, and which events it holds, without reading it. Layout: SPEC.md, "Index".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/base/error.h"
#include "format/base/varint.h"
#include "format/block.h"

namespace heaptape::format {

struct IndexEntry {
  BlockKind kind{};
  std::uint32_t length_bytes = 0;  // of the payload
  // Only for events; stamps (recorded) or microseconds (packed), the smallest and the largest.
  std::uint32_t events = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  friend bool operator==(const IndexEntry&, const IndexEntry&) = default;
};

// Writer and scanning reader both build it, so that an index can be compared byte by byte.
class IndexBuilder {
 public:
  void add(const IndexEntry& entry);
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t previous_first_ = 0;
};

class IndexSource {
 public:
  explicit IndexSource(ByteSource bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const noexcept { return bytes_.at_end(); }
  [[nodiscard]] Result<IndexEntry> next();

 private:
  ByteSource bytes_;
  std::uint64_t previous_first_ = 0;
};

}  // namespace heaptape::format
