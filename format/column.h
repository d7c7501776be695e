// Columns: one property of a block's events as bytes, compressed where that makes them smaller.
//
// ColumnWriter collects the raw bytes of a block's columns and compresses them; ColumnReader gives
// them back. Guarantees of the reader: no column yields more bytes than the caller allows, whatever
// the tape says; corrupt data is an error. Both keep their buffers from block to block; one thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "format/base/error.h"
#include "format/base/varint.h"

namespace heaptape::format {

// The values are part of the tape format: never renumber, only append. A reader must refuse a block
// with a column below `first_optional_column` that it does not know; others it ignores. What the
// columns hold: SPEC.md.
enum class ColumnId : std::uint8_t {
  kind = 1,
  size = 2,
  alignment = 3,
  address = 4,
  new_address = 5,
  stamp = 6,
  site = 7,
  flags = 8,
  thread = 9,
  time = 10,
  released = 11,
  index = 12,
};
inline constexpr std::uint8_t first_optional_column = 128;
inline constexpr std::size_t column_ids = 13;  // one more than the largest

enum class Coding : std::uint8_t { plain = 0, zstd = 1 };

// A column as it stands on the tape; `data` belongs to whoever made it.
struct Column {
  std::uint8_t id = 0;
  std::uint8_t coding = 0;
  std::uint32_t raw_size_bytes = 0;
  std::span<const std::byte> data;
};

class ColumnWriter {
 public:
  // zstd's level; 0 leaves every column as it is.
  explicit ColumnWriter(int level);
  ColumnWriter(ColumnWriter&&) noexcept;
  ColumnWriter& operator=(ColumnWriter&&) noexcept;
  ~ColumnWriter();

  // Starts a block's columns over.
  void start();
  // The raw bytes of a column, with room for `max_bytes`; once per block.
  [[nodiscard]] ByteSink& open(ColumnId id, std::size_t max_bytes);
  // The columns opened since `start` that are not empty, compressed; valid until the next `start`.
  [[nodiscard]] Result<std::span<const Column>> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class ColumnReader {
 public:
  ColumnReader();
  ColumnReader(ColumnReader&&) noexcept;
  ColumnReader& operator=(ColumnReader&&) noexcept;
  ~ColumnReader();

  // Takes a block's columns: refuses unknown essential ones and repetitions.
  [[nodiscard]] Result<void> start(std::span<const Column> columns);
  [[nodiscard]] bool has(ColumnId id) const noexcept;
  // The raw bytes; none for a column that is absent. An error if they are more than `max_bytes`.
  // Valid until the next `start`, as long as the columns' data are.
  [[nodiscard]] Result<ByteSource> open(ColumnId id, std::uint64_t max_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heaptape::format
