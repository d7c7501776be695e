#include "format/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace heaptape::format {
namespace {

constexpr std::size_t max_pieces = 2;

// 0, or the errno of what failed.
int write_all(int fd, std::span<iovec> parts) {
  while (!parts.empty()) {
    const ssize_t n = ::writev(fd, parts.data(), static_cast<int>(parts.size()));
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return errno;
    }
    auto written = static_cast<std::size_t>(n);
    while (!parts.empty() && written >= parts.front().iov_len) {
      written -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (!parts.empty()) {
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + written;
      parts.front().iov_len -= written;
    }
  }
  return 0;
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  OutputFile out;
  out.path_ = path.string();
  // Not emptied yet: it may be another writer's. Non-blocking: a pipe nobody reads would wait for ever.
  out.file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (!out.file_) {
    return system_failure(fmt::format("cannot create the tape '{}'", out.path_), errno);
  }
  struct stat status {};
  if (::fstat(out.file_.get(), &status) != 0) {
    return system_failure(fmt::format("cannot create the tape '{}'", out.path_), errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return failure(ExitCode::usage, "cannot write a tape to '{}': it is no regular file; name a file",
                   out.path_);
  }
  // File systems without locks do without.
  if (::flock(out.file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return failure(ExitCode::system, "the tape '{}' is being written by another process; name another file",
                   out.path_);
  }
  if (::ftruncate(out.file_.get(), 0) != 0) {
    return system_failure(fmt::format("cannot empty '{}'", out.path_), errno);
  }
  return out;
}

Result<void> OutputFile::state() const {
  if (error_) {
    return Failure(*error_);
  }
  return {};
}

Failure OutputFile::stick(Error error) {
  error_ = std::move(error);
  return Failure(*error_);
}

Result<void> OutputFile::fail(std::string_view what, int error_number) {
  error_ = system_failure(fmt::format("{} '{}'", what, path_), error_number).value();
  // What was not cut off here, a reader skips.
  [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), static_cast<off_t>(bytes_));
  return Failure(*error_);
}

Result<void> OutputFile::append(BlockKind kind, PayloadView payload) {
  const Piece piece{kind, payload};
  return write({&piece, 1});
}

Result<void> OutputFile::write(std::span<const Piece> pieces) {
  HEAPTAPE_TRY(state());
  if (!file_) {
    return failure(ExitCode::usage, "the tape '{}' is finished: nothing can be added", path_);
  }
  std::array<std::array<std::byte, block_header_bytes>, max_pieces> headers;
  std::array<iovec, 2 * max_pieces> parts{};
  std::size_t size = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::span<const std::byte> payload = std::as_bytes(pieces[i].payload);
    if (payload.size() > max_payload_bytes) {
      return failure(ExitCode::usage, "a block of {} bytes is more than a tape takes ({})", payload.size(),
                     max_payload_bytes);
    }
    BlockHeader header;
    header.kind = pieces[i].kind;
    header.length_bytes = static_cast<std::uint32_t>(payload.size());
    header.sequence = sequence_ + i;
    header.payload_crc = crc32c(payload);
    headers[i] = encode_block_header(header);
    parts[2 * i] = {headers[i].data(), headers[i].size()};
    parts[2 * i + 1] = {const_cast<std::byte*>(payload.data()), payload.size()};  // only read
    size += headers[i].size() + payload.size();
  }
  if (const int error = write_all(file_.get(), std::span(parts).first(2 * pieces.size())); error != 0) {
    return fail("cannot write to the tape", error);
  }
  bytes_ += size;
  sequence_ += pieces.size();
  return {};
}

Result<void> OutputFile::finish(PayloadView footer) {
  Payload end;
  encode_end(bytes_, end);
  const std::array<Piece, max_pieces> pieces = {{{BlockKind::footer, footer}, {BlockKind::end, end}}};
  HEAPTAPE_TRY(write(pieces));
  // Some file systems report a failed write only here.
  if (file_.close() != 0 && errno != EINTR) {
    error_ = system_failure(fmt::format("cannot close the tape '{}'", path_), errno).value();
    return Failure(*error_);
  }
  return {};
}

}  // namespace heaptape::format
