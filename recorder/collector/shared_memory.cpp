#include "recorder/collector/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <utility>

#include "format/base/descriptor.h"

namespace heaptape::collector {

namespace ipc = boost::interprocess;

namespace {

// What Boost.Interprocess calls a MemoryMappable: something with a handle to map.
class SealedFile {
 public:
  explicit SealedFile(format::Descriptor file) noexcept : file_(std::move(file)) {}
  [[nodiscard]] ipc::mapping_handle_t get_mapping_handle() const noexcept { return {file_.get(), false}; }
  [[nodiscard]] int fd() const noexcept { return file_.get(); }

 private:
  format::Descriptor file_;
};

}  // namespace

struct SharedMemory::State {
  explicit State(SealedFile sealed) : file(std::move(sealed)) {}
  SealedFile file;
  ipc::mapped_region region;
};

SharedMemory::SharedMemory(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
SharedMemory::SharedMemory(SharedMemory&&) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&&) noexcept = default;
SharedMemory::~SharedMemory() = default;

format::Result<SharedMemory> SharedMemory::create(std::size_t size_bytes) {
  format::Descriptor file(::memfd_create("heaptape", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) {
    return format::system_failure("memfd_create", errno);
  }
  if (::ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0) {
    return format::system_failure("shared memory for the rings", errno);
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return format::system_failure("sealing the shared memory", errno);
  }
  auto state = std::make_unique<State>(SealedFile(std::move(file)));
  try {
    state->region =
        ipc::mapped_region(state->file, ipc::read_write, 0, size_bytes, nullptr, MAP_SHARED | MAP_NORESERVE);
  } catch (const ipc::interprocess_exception& error) {
    return format::failure(format::ExitCode::system, "mapping the shared memory: {}", error.what());
  }
  return SharedMemory(std::move(state));
}

format::Result<void> SharedMemory::allocate(std::size_t offset, std::size_t length) {
  if (::fallocate(state_->file.fd(), 0, static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
    return format::system_failure("memory for the rings", errno);
  }
  return {};
}

std::span<std::byte> SharedMemory::bytes() const noexcept {
  return {static_cast<std::byte*>(state_->region.get_address()), state_->region.get_size()};
}

int SharedMemory::fd() const noexcept { return state_->file.fd(); }

}  // namespace heaptape::collector
