// A tape file that is read by position.
//
// Guarantees: reads with pread into its own buffers, so that a file cut short meanwhile yields
// fewer bytes and never a signal; never changes the file. One thread per FileWindow; any number of
// windows over one InputFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "format/base/descriptor.h"
#include "format/base/error.h"

namespace heaptape::format {

class InputFile {
 public:
  // A regular file that is not empty; anything else is one clear error.
  [[nodiscard]] static Result<InputFile> open(const std::filesystem::path& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }  // when opened
  // Fewer bytes than asked for: the file ends there.
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  Descriptor file_;
  std::string path_;
  std::uint64_t size_bytes_ = 0;
};

// Reads ahead in large pieces.
class FileWindow {
 public:
  explicit FileWindow(const InputFile& file) : file_(&file) {}

  // The bytes [offset, offset + size), fewer at the end of the file. Valid until the next call.
  [[nodiscard]] Result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t size);

 private:
  static constexpr std::size_t ahead_bytes = std::size_t{1} << 20;

  const InputFile* file_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::uint64_t start_ = 0;
  std::size_t length_ = 0;
};

}  // namespace heaptape::format
