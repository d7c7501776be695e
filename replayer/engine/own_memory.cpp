#include "replayer/engine/own_memory.h"

#include <sys/mman.h>
#include <unistd.h>

extern "C" {
// Placed by the linker: the program's writable static memory.
extern char __data_start[];  // NOLINT(readability-identifier-naming)
extern char _end[];          // NOLINT(readability-identifier-naming)
}

namespace heaptape::replayer::engine {

namespace {

// A descriptor that is closed as soon as its mapping exists.
class Memfd {
 public:
  explicit Memfd(std::size_t size_bytes) noexcept : fd_(::memfd_create("heaptape-engine", MFD_CLOEXEC)) {
    if (fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(size_bytes)) != 0) reset();
  }
  Memfd(const Memfd&) = delete;
  Memfd& operator=(const Memfd&) = delete;
  ~Memfd() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd_;
};

void* map_shared(void* where, std::size_t size_bytes, int fd, std::size_t offset, int protection,
                 int flags) noexcept {
  void* const address =
      ::mmap(where, size_bytes, protection, MAP_SHARED | flags, fd, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace

void* OwnMemory::remember(void* address, std::size_t size_bytes) noexcept {
  if (address == nullptr || count_ == capacity) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  ranges_[count_++] = {begin, begin + size_bytes};
  return address;
}

void* OwnMemory::make(std::size_t size_bytes, Touching touching) noexcept {
  const std::size_t rounded = round_up(size_bytes == 0 ? 1 : size_bytes, page_bytes);
  const Memfd file(rounded);
  if (file.get() < 0) return nullptr;
  const int populate = touching == Touching::now ? MAP_POPULATE : 0;
  return remember(map_shared(nullptr, rounded, file.get(), 0, PROT_READ | PROT_WRITE, populate), rounded);
}

char* OwnMemory::make_windows(std::size_t count, std::size_t stride_bytes, std::size_t chunk_bytes,
                              std::size_t alignment_bytes) noexcept {
  const Memfd file(count * chunk_bytes);
  if (file.get() < 0) return nullptr;
  const std::size_t reserved = count * stride_bytes + alignment_bytes;
  void* const whole = map_shared(nullptr, reserved, file.get(), 0, PROT_NONE, MAP_NORESERVE);
  if (remember(whole, reserved) == nullptr) return nullptr;
  const std::uintptr_t begin = round_up(reinterpret_cast<std::uintptr_t>(whole), alignment_bytes);
  for (std::size_t at = 0; at < count * stride_bytes; at += chunk_bytes) {
    void* const where = reinterpret_cast<void*>(begin + at);
    const std::size_t offset = at / stride_bytes * chunk_bytes;
    if (map_shared(where, chunk_bytes, file.get(), offset, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_POPULATE) == nullptr)
      return nullptr;
  }
  return reinterpret_cast<char*>(begin);
}

void* OwnMemory::map_file(int fd, std::size_t size_bytes, bool writable) noexcept {
  const std::size_t rounded = round_up(size_bytes, page_bytes);
  void* const whole = make(rounded + page_bytes, Touching::now);
  if (whole == nullptr) return nullptr;
  const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  return map_shared(whole, rounded, fd, 0, protection, MAP_FIXED | MAP_POPULATE);
}

bool OwnMemory::owns(std::uintptr_t begin, std::uintptr_t end) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (begin >= ranges_[i].begin && end <= ranges_[i].end) return true;
  }
  return false;
}

void touch_static_memory() noexcept {
  const auto end = reinterpret_cast<std::uintptr_t>(_end);
  for (auto at = reinterpret_cast<std::uintptr_t>(__data_start); at < end; at += page_bytes) {
    auto* const byte = reinterpret_cast<volatile char*>(at);
    *byte = *byte;
  }
  auto* const last = reinterpret_cast<volatile char*>(end - 1);
  *last = *last;
}

}  // namespace heaptape::replayer::engine
