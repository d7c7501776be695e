#include "format/block_reader.h"

#include <cstring>

namespace heaptape::format {

Failure BlockReader::located(const BlockPlace& place, Error error) const {
  return Failure(std::move(error).within(fmt::format("'{}', block at byte {}", file_.path(), place.offset)));
}

Result<PayloadView> BlockReader::read(const BlockPlace& place) {
  const auto bytes = window_.at(place.offset, block_header_bytes + place.length_bytes);
  if (!bytes) {
    return Failure(bytes.error());
  }
  if (bytes->size() == block_header_bytes + place.length_bytes) {
    const auto header = decode_block_header(bytes->first<block_header_bytes>());
    const auto payload = bytes->subspan(block_header_bytes);
    if (header && header->kind == place.kind && header->length_bytes == place.length_bytes &&
        (!place.checked || header->payload_crc == place.payload_crc) &&
        crc32c(payload) == header->payload_crc) {
      payload_.resize(place.length_bytes / sizeof(std::uint64_t));
      std::memcpy(payload_.data(), payload.data(), payload.size());
      return PayloadView(payload_);
    }
  }
  return located(place, Error(ExitCode::bad_tape,
                              place.checked ? "the file changed while it was read"
                                            : "the block is damaged; `heaptape check` tells what is left"));
}

Result<RecordedBlock> BlockReader::read_recorded(const BlockPlace& place, RecordedDecoder& decoder,
                                                 std::vector<RecordedEvent>& events) {
  const auto payload = read(place);
  if (!payload) {
    return Failure(payload.error());
  }
  auto block = decode_recorded(*payload);
  if (!block) {
    return located(place, block.error());
  }
  if (auto decoded = decoder.decode(*block, events); !decoded) {
    return located(place, decoded.error());
  }
  return block;
}

Result<PackedBlock> BlockReader::read_packed(const BlockPlace& place, PackedDecoder& decoder) {
  const auto payload = read(place);
  if (!payload) {
    return Failure(payload.error());
  }
  auto block = decode_packed(*payload);
  if (!block) {
    return located(place, block.error());
  }
  if (auto started = decoder.start(*block); !started) {
    return located(place, started.error());
  }
  return block;
}

}  // namespace heaptape::format
