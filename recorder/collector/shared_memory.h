// A sealed memfd, mapped: the memory that one recorded process shares with us.
//
// Guarantees: the size is fixed for ever (sealed against shrinking, growing and unsealing), so no
// mapping of it can meet the end of the file; pages exist only where `allocate` has succeeded, and
// those cannot be taken away. Boost.Interprocess maps it; its exceptions end in this file.
// Move-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "format/base/error.h"

namespace heaptape::collector {

class SharedMemory {
 public:
  [[nodiscard]] static format::Result<SharedMemory> create(std::size_t size_bytes);

  SharedMemory(SharedMemory&&) noexcept;
  SharedMemory& operator=(SharedMemory&&) noexcept;
  ~SharedMemory();

  // Gives [offset, offset + length) real, zeroed pages. Fails where the system has none left.
  [[nodiscard]] format::Result<void> allocate(std::size_t offset, std::size_t length);

  [[nodiscard]] std::span<std::byte> bytes() const noexcept;
  [[nodiscard]] int fd() const noexcept;

 private:
  struct State;
  explicit SharedMemory(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace heaptape::collector
