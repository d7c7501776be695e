// Variable-length integers (LEB128: seven bits a byte, low bits first) and their buffers.
//
// ByteSink grows by what its caller reserves once, so that `put` in a loop has no check. ByteSource
// checks every read: at the end of its bytes, and for a varint of more than 64 bits, it turns bad,
// yields zeros from then on, and never reads outside. Not thread-safe; any input is legal.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace heaptape::format {

inline constexpr std::size_t max_varint_bytes = 10;

// Small negative and positive numbers become small unsigned ones: 0 -1 1 -2 2 ...
[[nodiscard]] constexpr std::uint64_t zigzag(std::uint64_t two_complement) noexcept {
  return (two_complement << 1) ^ (0 - (two_complement >> 63));
}
[[nodiscard]] constexpr std::uint64_t unzigzag(std::uint64_t code) noexcept {
  return (code >> 1) ^ (0 - (code & 1));
}

class ByteSink {
 public:
  // Makes room for `size` bytes and starts over. What was written before is gone.
  void reset(std::size_t size) {
    if (size > capacity_) {
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity_ = size;
    }
    end_ = bytes_.get();
  }
  // No checks: `reset` made room.
  void put_byte(std::uint8_t value) noexcept { *end_++ = static_cast<std::byte>(value); }
  void put(std::uint64_t value) noexcept {
    while (value >= 0x80) {
      put_byte(static_cast<std::uint8_t>(value | 0x80));
      value >>= 7;
    }
    put_byte(static_cast<std::uint8_t>(value));
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {bytes_.get(), static_cast<std::size_t>(end_ - bytes_.get())};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::byte* end_ = nullptr;
  std::size_t capacity_ = 0;
};

class ByteSource {
 public:
  ByteSource() = default;
  explicit ByteSource(std::span<const std::byte> bytes) noexcept
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] std::uint8_t get_byte() noexcept {
    if (next_ == end_) {
      bad_ = true;
      return 0;
    }
    return static_cast<std::uint8_t>(*next_++);
  }
  [[nodiscard]] std::uint64_t get() noexcept {
    if (next_ != end_ && static_cast<std::uint8_t>(*next_) < 0x80) {  // nearly always
      return static_cast<std::uint8_t>(*next_++);
    }
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t byte = get_byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80 && (shift < 63 || byte <= 1)) {
        return bad_ ? 0 : value;
      }
    }
    bad_ = true;
    next_ = end_;
    return 0;
  }
  [[nodiscard]] bool bad() const noexcept { return bad_; }
  [[nodiscard]] bool at_end() const noexcept { return next_ == end_; }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return {next_, end_}; }

 private:
  const std::byte* next_ = nullptr;
  const std::byte* end_ = nullptr;
  bool bad_ = false;
};

}  // namespace heaptape::format
