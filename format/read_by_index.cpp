#include <cstring>

#include "format/contents.h"
#include "format/scan.h"

namespace heaptape::format {
namespace {

constexpr std::uint64_t end_payload_bytes = 24;
constexpr std::uint64_t end_block_bytes = block_header_bytes + end_payload_bytes;
constexpr std::uint64_t max_index_bytes = 1ULL << 30;  // of a tape of about 100 million blocks

// Whether the block at `place.offset` is whole and is the one that the caller expects there. Fills
// in its checksum and payload.
Result<bool> read_block(FileWindow& window, BlockPlace& place, std::uint64_t sequence, Payload& payload) {
  const auto head = window.at(place.offset, block_header_bytes);
  if (!head) {
    return Failure(head.error());
  }
  if (head->size() < block_header_bytes) {
    return false;
  }
  const auto header = decode_block_header(head->first<block_header_bytes>());
  if (!header || header->kind != place.kind || header->length_bytes != place.length_bytes ||
      header->version > format_version || header->sequence != sequence ||
      (!is_known(header->kind) && (header->flags & BlockHeader::essential) != 0)) {
    return false;
  }
  const auto bytes = window.at(place.offset + block_header_bytes, place.length_bytes);
  if (!bytes) {
    return Failure(bytes.error());
  }
  if (bytes->size() != place.length_bytes || crc32c(*bytes) != header->payload_crc) {
    return false;
  }
  payload.resize(place.length_bytes / sizeof(std::uint64_t));
  std::memcpy(payload.data(), bytes->data(), bytes->size());
  place.payload_crc = header->payload_crc;
  place.checked = true;
  return true;
}

}  // namespace

Result<std::optional<TapeContents>> read_by_index(const InputFile& file) {
  constexpr std::nullopt_t no_index = std::nullopt;
  const std::uint64_t size = file.size_bytes();
  if (size < end_block_bytes + block_header_bytes) {
    return no_index;
  }
  FileWindow window(file);
  // The end block: its sequence number is that of the footer and one, so take it as it comes.
  const std::uint64_t end_offset = size - end_block_bytes;
  const auto end_head = window.at(end_offset, block_header_bytes);
  if (!end_head) {
    return Failure(end_head.error());
  }
  if (end_head->size() < block_header_bytes) {
    return no_index;
  }
  const auto end_header = decode_block_header(end_head->first<block_header_bytes>());
  if (!end_header || end_header->sequence < 2) {
    return no_index;
  }
  Payload payload;
  BlockPlace end{end_offset, end_payload_bytes, 0, BlockKind::end, false, false};
  const auto end_whole = read_block(window, end, end_header->sequence, payload);
  if (!end_whole || !*end_whole) {
    return end_whole ? Result<std::optional<TapeContents>>(no_index) : Failure(end_whole.error());
  }
  const auto footer_offset = decode_end(payload);
  if (!footer_offset || *footer_offset > end_offset - block_header_bytes ||
      end_offset - *footer_offset > block_header_bytes + std::uint64_t{max_payload_bytes}) {
    return no_index;
  }
  BlockPlace footer{*footer_offset,
                    static_cast<std::uint32_t>(end_offset - *footer_offset - block_header_bytes),
                    0,
                    BlockKind::footer,
                    false,
                    false};
  Payload footer_payload;
  const auto footer_whole = read_block(window, footer, end_header->sequence - 1, footer_payload);
  if (!footer_whole || !*footer_whole) {
    return footer_whole ? Result<std::optional<TapeContents>>(no_index) : Failure(footer_whole.error());
  }
  const auto footer_block = decode_footer(footer_payload);
  ColumnReader column;
  if (!footer_block || !column.start({&footer_block->index, 1}) || !column.has(ColumnId::index)) {
    return no_index;
  }
  const auto entries = column.open(ColumnId::index, std::min(max_index_bytes, size));
  if (!entries) {
    return no_index;
  }

  ContentsBuilder contents;
  IndexSource index(*entries);
  std::uint64_t offset = 0;
  std::uint64_t sequence = 0;
  for (; !index.at_end(); ++sequence) {
    const auto entry = index.next();
    if (!entry) {
      return no_index;
    }
    BlockPlace place{offset, entry->length_bytes, 0, entry->kind, false, false};
    offset += block_header_bytes + entry->length_bytes;
    if (offset > *footer_offset) {
      return no_index;
    }
    if (entry->kind == BlockKind::recorded_events || entry->kind == BlockKind::packed_events ||
        entry->kind == BlockKind::watermark) {
      contents.take_unread(place, *entry);
      continue;
    }
    const auto whole = read_block(window, place, sequence, payload);
    if (!whole) {
      return Failure(whole.error());
    }
    if (!*whole || !contents.take(place, payload)) {
      return no_index;
    }
  }
  if (offset != *footer_offset || sequence != end_header->sequence - 1 || !contents.has_header() ||
      !contents.take(footer, footer_payload) || !contents.take(end, payload)) {
    return no_index;
  }
  TapeContents found = contents.finish();
  found.info.file_bytes = size;
  return found;
}

}  // namespace heaptape::format
