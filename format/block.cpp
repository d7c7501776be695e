#include "format/block.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "format/base/little_endian.h"

namespace heaptape::format {
namespace {

// Offsets in the header.
constexpr std::size_t at_kind = 8;
constexpr std::size_t at_version = 10;
constexpr std::size_t at_flags = 11;
constexpr std::size_t at_length = 12;
constexpr std::size_t at_sequence = 16;
constexpr std::size_t at_payload_crc = 24;
constexpr std::size_t at_header_crc = 28;

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  std::uint32_t crc = 0xffffffffU;
  while (!bytes.empty()) {  // the library takes an int
    const std::size_t n = std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max() / 2);
    // It does not write to the buffer, whatever its signature says.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(n), crc);
    bytes = bytes.subspan(n);
  }
  return ~crc;
}

std::array<std::byte, block_header_bytes> encode_block_header(const BlockHeader& header) noexcept {
  std::array<std::byte, block_header_bytes> bytes{};
  std::memcpy(bytes.data(), block_magic.data(), block_magic.size());
  store_le(bytes.data() + at_kind, static_cast<std::uint16_t>(header.kind));
  store_le(bytes.data() + at_version, header.version);
  store_le(bytes.data() + at_flags, header.flags);
  store_le(bytes.data() + at_length, header.length_bytes);
  store_le(bytes.data() + at_sequence, header.sequence);
  store_le(bytes.data() + at_payload_crc, header.payload_crc);
  store_le(bytes.data() + at_header_crc, crc32c(std::span(bytes).first(at_header_crc)));
  return bytes;
}

std::optional<BlockHeader> decode_block_header(
    std::span<const std::byte, block_header_bytes> bytes) noexcept {
  if (std::memcmp(bytes.data(), block_magic.data(), block_magic.size()) != 0 ||
      load_le<std::uint32_t>(bytes.data() + at_header_crc) != crc32c(bytes.first(at_header_crc))) {
    return std::nullopt;
  }
  BlockHeader header;
  header.kind = BlockKind{load_le<std::uint16_t>(bytes.data() + at_kind)};
  header.version = load_le<std::uint8_t>(bytes.data() + at_version);
  header.flags = load_le<std::uint8_t>(bytes.data() + at_flags);
  header.length_bytes = load_le<std::uint32_t>(bytes.data() + at_length);
  header.sequence = load_le<std::uint64_t>(bytes.data() + at_sequence);
  header.payload_crc = load_le<std::uint32_t>(bytes.data() + at_payload_crc);
  return header;
}

}  // namespace heaptape::format
