// The frame of a tape: every block is a 32-byte header and one Cap'n Proto message.
//
// Guarantees: a header is accepted only with the right magic and its own checksum, so its fields
// are as written; `length_bytes` is bounded by `max_payload_bytes` before anything is read or
// allocated by it. Layout: SPEC.md, "Blocks". Pure functions, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace heaptape::format {

inline constexpr std::size_t block_header_bytes = 32;
inline constexpr std::uint32_t max_payload_bytes = 32U << 20;
inline constexpr std::uint32_t max_events_per_block = 1U << 18;
inline constexpr std::uint8_t format_version = 1;
// The last eight bytes of a line ending and a byte above 127 show a transfer as text.
inline constexpr std::array<std::uint8_t, 8> block_magic = {0x89, 'H', 'T', 'A', 'P', '\r', '\n', 0x1a};

// The values are part of the tape format: never renumber, only append.
enum class BlockKind : std::uint16_t {
  header = 1,
  recorded_events = 2,
  packed_events = 3,
  threads = 4,
  modules = 5,
  markers = 6,
  resident = 7,
  gap = 8,
  watermark = 9,
  footer = 10,
  end = 11,  // the last block, of fixed size: where the footer is
};

struct BlockHeader {
  // A reader that does not know the kind of an essential block must refuse the tape; others it skips.
  static constexpr std::uint8_t essential = 1;

  BlockKind kind{};
  std::uint8_t version = format_version;
  std::uint8_t flags = 0;
  std::uint32_t length_bytes = 0;  // of the payload, a multiple of 8
  std::uint64_t sequence = 0;      // 0, 1, ... within the tape
  std::uint32_t payload_crc = 0;

  friend bool operator==(const BlockHeader&, const BlockHeader&) = default;
};

[[nodiscard]] constexpr bool is_known(BlockKind kind) noexcept {
  return kind >= BlockKind::header && kind <= BlockKind::end;
}

// CRC-32C (Castagnoli), as in iSCSI: "123456789" gives 0xe3069283.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

[[nodiscard]] std::array<std::byte, block_header_bytes> encode_block_header(
    const BlockHeader& header) noexcept;
// Nothing where magic or checksum are wrong. The version may be newer and the length too large: the
// caller says so.
[[nodiscard]] std::optional<BlockHeader> decode_block_header(
    std::span<const std::byte, block_header_bytes> bytes) noexcept;

}  // namespace heaptape::format
