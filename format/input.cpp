#include "format/input.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace heaptape::format {

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  InputFile in;
  in.path_ = path.string();
  // Non-blocking: opening a pipe that nobody writes would wait for ever.
  in.file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!in.file_) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      return failure(ExitCode::bad_tape,
                     "there is no tape '{}'; check the name, or make one: heaptape record -o FILE -- PROGRAM",
                     in.path_);
    }
    return system_failure(fmt::format("cannot open the tape '{}'", in.path_), error);
  }
  struct stat status {};
  if (::fstat(in.file_.get(), &status) != 0) {
    return system_failure(fmt::format("cannot open the tape '{}'", in.path_), errno);
  }
  if (S_ISDIR(status.st_mode)) {
    return failure(ExitCode::bad_tape, "'{}' is a directory; name a tape inside it", in.path_);
  }
  if (!S_ISREG(status.st_mode)) {
    return failure(ExitCode::bad_tape,
                   "'{}' is a pipe or a device; a tape is read back and forth: save it to a file first",
                   in.path_);
  }
  if (status.st_size == 0) {
    return failure(ExitCode::bad_tape, "'{}' is empty: nothing was recorded, or the recording failed",
                   in.path_);
  }
  in.size_bytes_ = static_cast<std::uint64_t>(status.st_size);
  return in;
}

Result<std::size_t> InputFile::read_at(std::uint64_t offset, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t n =
        ::pread(file_.get(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return system_failure(fmt::format("cannot read the tape '{}' at byte {}", path_, offset + done), errno);
    }
    if (n == 0) {
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<std::span<const std::byte>> FileWindow::at(std::uint64_t offset, std::size_t size) {
  if (offset >= file_->size_bytes()) {
    return std::span<const std::byte>{};
  }
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, file_->size_bytes() - offset));
  if (offset < start_ || offset + size > start_ + length_) {
    const std::size_t wanted = std::max(
        size, static_cast<std::size_t>(std::min<std::uint64_t>(ahead_bytes, file_->size_bytes() - offset)));
    if (wanted > capacity_) {
      buffer_ = std::make_unique_for_overwrite<std::byte[]>(wanted);
      capacity_ = wanted;
    }
    length_ = 0;
    const auto read = file_->read_at(offset, {buffer_.get(), wanted});
    if (!read) {
      return Failure(read.error());
    }
    start_ = offset;
    length_ = *read;
  }
  const std::size_t skipped = static_cast<std::size_t>(offset - start_);
  return std::span<const std::byte>(buffer_.get() + skipped, std::min(size, length_ - skipped));
}

}  // namespace heaptape::format
