#include "format/column.h"

#include <zstd.h>

#include <array>
#include <limits>
#include <vector>

namespace heaptape::format {
namespace {

constexpr std::array<const char*, column_ids> names = {
    "?",     "kinds", "sizes",   "alignments", "addresses", "new addresses", "stamps",
    "sites", "flags", "threads", "times",      "releases",  "index"};

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// A buffer that only grows.
class Buffer {
 public:
  [[nodiscard]] std::span<std::byte> room(std::size_t size) {
    if (size > capacity_) {
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity_ = size;
    }
    return {bytes_.get(), size};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

constexpr std::size_t number(ColumnId id) noexcept { return static_cast<std::size_t>(id); }

}  // namespace

struct ColumnWriter::State {
  int level = 1;
  std::unique_ptr<ZSTD_CCtx, FreeCompressor> context;
  std::array<ByteSink, column_ids> sinks;
  std::array<bool, column_ids> opened{};
  std::array<Buffer, column_ids> packed;
  std::vector<Column> columns;
};

ColumnWriter::ColumnWriter(int level) : state_(std::make_unique<State>()) {
  state_->level = level;
  if (level != 0) {
    state_->context.reset(ZSTD_createCCtx());
  }
}
ColumnWriter::ColumnWriter(ColumnWriter&&) noexcept = default;
ColumnWriter& ColumnWriter::operator=(ColumnWriter&&) noexcept = default;
ColumnWriter::~ColumnWriter() = default;

void ColumnWriter::start() { state_->opened.fill(false); }

ByteSink& ColumnWriter::open(ColumnId id, std::size_t max_bytes) {
  state_->opened[number(id)] = true;
  state_->sinks[number(id)].reset(max_bytes);
  return state_->sinks[number(id)];
}

Result<std::span<const Column>> ColumnWriter::finish() {
  state_->columns.clear();
  for (std::size_t i = 0; i < column_ids; ++i) {
    const std::span<const std::byte> raw = state_->sinks[i].bytes();
    if (!state_->opened[i] || raw.empty()) {
      continue;
    }
    if (raw.size() > std::numeric_limits<std::uint32_t>::max()) {
      return failure(ExitCode::usage, "a column of {} bytes is too large for one block", raw.size());
    }
    Column column{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(Coding::plain),
                  static_cast<std::uint32_t>(raw.size()), raw};
    if (state_->context) {
      const std::span<std::byte> room = state_->packed[i].room(ZSTD_compressBound(raw.size()));
      const std::size_t size = ZSTD_compressCCtx(state_->context.get(), room.data(), room.size(), raw.data(),
                                                 raw.size(), state_->level);
      if (ZSTD_isError(size) == 0 && size < raw.size()) {  // an error here means no more than: not smaller
        column.coding = static_cast<std::uint8_t>(Coding::zstd);
        column.data = room.first(size);
      }
    }
    state_->columns.push_back(column);
  }
  return std::span<const Column>(state_->columns);
}

struct ColumnReader::State {
  std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context{ZSTD_createDCtx()};
  std::array<Column, column_ids> columns;
  std::array<Buffer, column_ids> raw;
};

ColumnReader::ColumnReader() : state_(std::make_unique<State>()) {}
ColumnReader::ColumnReader(ColumnReader&&) noexcept = default;
ColumnReader& ColumnReader::operator=(ColumnReader&&) noexcept = default;
ColumnReader::~ColumnReader() = default;

Result<void> ColumnReader::start(std::span<const Column> columns) {
  state_->columns.fill(Column{});
  for (const Column& column : columns) {
    if (column.id >= first_optional_column) {
      continue;
    }
    if (column.id == 0 || column.id >= column_ids) {
      return failure(ExitCode::bad_tape,
                     "column {} is unknown: the tape was written by a newer heaptape; update this one",
                     column.id);
    }
    if (state_->columns[column.id].id != 0) {
      return failure(ExitCode::bad_tape, "the column of {} is there twice", names[column.id]);
    }
    state_->columns[column.id] = column;
  }
  return {};
}

bool ColumnReader::has(ColumnId id) const noexcept { return state_->columns[number(id)].id != 0; }

Result<ByteSource> ColumnReader::open(ColumnId id, std::uint64_t max_bytes) {
  const Column& column = state_->columns[number(id)];
  const char* name = names[number(id)];
  if (column.raw_size_bytes > max_bytes) {
    return failure(ExitCode::bad_tape, "the column of {} claims {} bytes, more than its events can have",
                   name, column.raw_size_bytes);
  }
  if (column.coding == static_cast<std::uint8_t>(Coding::plain)) {
    if (column.data.size() != column.raw_size_bytes) {
      return failure(ExitCode::bad_tape, "the column of {} has {} bytes instead of {}", name,
                     column.data.size(), column.raw_size_bytes);
    }
    return ByteSource(column.data);
  }
  if (column.coding != static_cast<std::uint8_t>(Coding::zstd)) {
    return failure(ExitCode::bad_tape,
                   "the column of {} is coded in a way that is unknown ({}): written by a newer heaptape?",
                   name, column.coding);
  }
  const std::span<std::byte> room = state_->raw[number(id)].room(column.raw_size_bytes);
  const std::size_t size = ZSTD_decompressDCtx(state_->context.get(), room.data(), room.size(),
                                               column.data.data(), column.data.size());
  if (ZSTD_isError(size) != 0 || size != column.raw_size_bytes) {
    return failure(ExitCode::bad_tape, "the column of {} does not decompress: {}", name,
                   ZSTD_isError(size) != 0 ? ZSTD_getErrorName(size) : "too few bytes");
  }
  return ByteSource(room);
}

}  // namespace heaptape::format
