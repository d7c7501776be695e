// Integers in little-endian byte order, at any alignment, on any host.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace heaptape::format {

template <std::unsigned_integral T>
constexpr void store_le(std::byte* to, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    to[i] = static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff);
  }
}

template <std::unsigned_integral T>
[[nodiscard]] constexpr T load_le(const std::byte* from) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace heaptape::format
