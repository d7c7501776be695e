// A file to which whole blocks are appended.
//
// Guarantees: each block is handed to the kernel in one call where the kernel takes it so (a short
// write and EINTR are continued); after a failure the file is cut back to its last whole block and
// every later call returns the same error. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "format/base/descriptor.h"
#include "format/base/error.h"
#include "format/block.h"
#include "format/message.h"

namespace heaptape::format {

class OutputFile {
 public:
  // Creates or empties a regular file; refuses one that another writer holds.
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path);

  [[nodiscard]] Result<void> append(BlockKind kind, PayloadView payload);
  // Footer and the block that points to it, in one piece; then closes the file.
  [[nodiscard]] Result<void> finish(PayloadView footer);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t blocks() const noexcept { return sequence_; }
  // The error that the file is stuck with, and how who calls makes it stuck with one of his own.
  [[nodiscard]] Result<void> state() const;
  [[nodiscard]] Failure stick(Error error);

 private:
  struct Piece {
    BlockKind kind;
    PayloadView payload;
  };
  [[nodiscard]] Result<void> write(std::span<const Piece> pieces);
  [[nodiscard]] Result<void> fail(std::string_view what, int error_number);

  Descriptor file_;
  std::string path_;
  std::uint64_t bytes_ = 0;
  std::uint64_t sequence_ = 0;
  std::optional<Error> error_;
};

}  // namespace heaptape::format
