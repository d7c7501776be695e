// Finds the blocks of a tape: by its index, or by reading all of it.
//
// Guarantees: the scan finds every whole block (magic, both checksums, in sequence) of a file of
// any content, in time linear in its size, and tells what lies between them. Fails only where
// SPEC.md says so: no header block, a newer version, an unknown essential block, the system.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/base/error.h"
#include "format/block.h"
#include "format/cursor.h"
#include "format/input.h"
#include "format/message.h"
#include "format/reader.h"

namespace heaptape::format {

// A block that the cursors read: events, gaps and watermarks.
struct BlockPlace {
  std::uint64_t offset = 0;  // of its header
  std::uint32_t length_bytes = 0;
  std::uint32_t payload_crc = 0;
  BlockKind kind{};
  bool checked = false;     // read and found whole; payload_crc is known
  bool after_loss = false;  // blocks are missing before this one
};

struct TapeContents {
  TapeInfo info;
  std::vector<BlockPlace> blocks;  // in file order
  std::optional<MergeReport> merged;
  bool has_footer = false;
  bool damaged = false;      // this file itself, whatever its source was
  bool loss_at_end = false;  // blocks are missing after the last of `blocks`
};

[[nodiscard]] Result<TapeContents> scan_whole(const InputFile& file);
// Reads the footer, and by its index the blocks that hold no events. Nothing where there is no
// footer, or its index does not fit the file: then only a scan helps.
[[nodiscard]] Result<std::optional<TapeContents>> read_by_index(const InputFile& file);

}  // namespace heaptape::format
