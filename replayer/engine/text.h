// Text for the result's message fields, built without allocating: a fixed buffer that cuts off what
// does not fit and is always terminated.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heaptape::replayer::engine {

class Text {
 public:
  Text(char* buffer, std::size_t capacity_bytes) noexcept : buffer_(buffer), capacity_(capacity_bytes) {
    buffer_[0] = '\0';
  }

  Text& operator<<(const char* text) noexcept {
    while (*text != '\0') append(*text++);
    return *this;
  }
  Text& operator<<(std::uint64_t number) noexcept { return digits(number, 10); }
  Text& hex(std::uint64_t number) noexcept { return (*this << "0x").digits(number, 16); }

 private:
  void append(char character) noexcept {
    if (length_ + 1 >= capacity_) return;
    buffer_[length_++] = character == '\n' ? ' ' : character;
    buffer_[length_] = '\0';
  }
  Text& digits(std::uint64_t number, std::uint64_t base) noexcept {
    char reversed[20];
    std::size_t count = 0;
    do {
      reversed[count++] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    while (count != 0) append(reversed[--count]);
    return *this;
  }

  char* buffer_;
  std::size_t capacity_;
  std::size_t length_ = 0;
};

}  // namespace heaptape::replayer::engine
