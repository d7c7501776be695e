#include "replayer/plan/plan_block.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace heaptape::replayer {

using format::ExitCode;
using format::failure;
using format::Result;
using format::system_failure;

namespace {

// True where `count` elements of `element_bytes` at `offset` lie inside `total_bytes`.
bool fits(std::uint64_t offset, std::uint64_t count, std::uint64_t element_bytes, std::uint64_t total_bytes) {
  return offset % 64 == 0 && offset <= total_bytes && count <= (total_bytes - offset) / element_bytes;
}

bool is_sound(const PlanHeader& h, std::uint64_t file_bytes) {
  if (h.magic != plan_magic || h.version != plan_version || h.total_bytes > file_bytes) {
    return false;
  }
  return fits(h.threads_offset, h.thread_count, sizeof(PlanThread), h.total_bytes) &&
         fits(h.ops_offset, h.op_count, sizeof(PlanOp), h.total_bytes) &&
         fits(h.runs_offset, h.run_count, sizeof(PlanRun), h.total_bytes) &&
         fits(h.instants_offset, h.instant_count, sizeof(PlanInstant), h.total_bytes);
}

}  // namespace

Result<Plan> Plan::adopt(format::Descriptor memory) {
  struct stat facts {};
  if (::fstat(memory.get(), &facts) != 0) {
    return system_failure("plan: fstat", errno);
  }
  const auto size_bytes = static_cast<std::size_t>(facts.st_size);
  if (size_bytes < sizeof(PlanHeader)) {
    return failure(ExitCode::system, "plan: {} bytes are no plan", size_bytes);
  }
  void* base = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (base == MAP_FAILED) {
    return system_failure("plan: mmap", errno);
  }
  Plan plan(std::move(memory), base, size_bytes);
  if (!is_sound(plan.header(), size_bytes)) {
    return failure(ExitCode::system, "plan: the header does not describe these {} bytes", size_bytes);
  }
  return plan;
}

Plan::Plan(Plan&& other) noexcept
    : memory_(std::move(other.memory_)),
      base_(std::exchange(other.base_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Plan& Plan::operator=(Plan&& other) noexcept {
  if (this != &other) {
    release();
    memory_ = std::move(other.memory_);
    base_ = std::exchange(other.base_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

Plan::~Plan() { release(); }

void Plan::release() noexcept {
  if (base_ != nullptr) {
    ::munmap(base_, size_bytes_);
    base_ = nullptr;
  }
}

std::span<const PlanThread> Plan::threads() const noexcept {
  return {static_cast<const PlanThread*>(at(header().threads_offset)), header().thread_count};
}

std::span<const PlanOp> Plan::ops() const noexcept {
  return {static_cast<const PlanOp*>(at(header().ops_offset)), header().op_count};
}

std::span<const PlanOp> Plan::ops(std::uint32_t thread) const noexcept {
  const PlanThread t = threads()[thread];
  return ops().subspan(t.first_op, t.op_count);
}

std::span<const PlanRun> Plan::runs() const noexcept {
  return {static_cast<const PlanRun*>(at(header().runs_offset)), header().run_count};
}

std::span<const PlanInstant> Plan::instants() const noexcept {
  return {static_cast<const PlanInstant*>(at(header().instants_offset)), header().instant_count};
}

void Plan::set_exact(std::size_t instant, bool exact) noexcept {
  auto* all = static_cast<PlanInstant*>(
      static_cast<void*>(static_cast<std::byte*>(base_) + header().instants_offset));
  all[instant].exact = exact ? 1 : 0;
}

}  // namespace heaptape::replayer
