// Owns one compiled plan: the memfd that engines map, and our own mapping of it.
//
// Guarantees: `adopt` checks that every offset and count of the header lies inside the block, so the
// spans are safe to walk; what the operations mean is checked by verify_plan. Move-only; reading is
// safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/base/descriptor.h"
#include "format/base/error.h"
#include "replayer/plan/plan.h"

namespace heaptape::replayer {

class Plan {
 public:
  // Takes a descriptor that holds a whole plan. Errors: system (mapping refused, or not a plan).
  [[nodiscard]] static format::Result<Plan> adopt(format::Descriptor memory);

  Plan(Plan&& other) noexcept;
  Plan& operator=(Plan&& other) noexcept;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan();

  [[nodiscard]] int fd() const noexcept { return memory_.get(); }
  [[nodiscard]] const PlanHeader& header() const noexcept { return *static_cast<const PlanHeader*>(base_); }
  [[nodiscard]] std::span<const PlanThread> threads() const noexcept;
  [[nodiscard]] std::span<const PlanOp> ops() const noexcept;
  [[nodiscard]] std::span<const PlanOp> ops(std::uint32_t thread) const noexcept;
  [[nodiscard]] std::span<const PlanRun> runs() const noexcept;
  [[nodiscard]] std::span<const PlanInstant> instants() const noexcept;

  // Operations that call the allocator: all but the waits.
  [[nodiscard]] std::uint64_t calls() const noexcept { return header().op_count - header().wait_count; }

  // Changes how an instant is read, for engines started from now on.
  void set_exact(std::size_t instant, bool exact) noexcept;

 private:
  friend class PlanAssembler;
  Plan(format::Descriptor memory, void* base, std::size_t size_bytes) noexcept
      : memory_(std::move(memory)), base_(base), size_bytes_(size_bytes) {}
  [[nodiscard]] const void* at(std::uint64_t offset) const noexcept {
    return static_cast<const std::byte*>(base_) + offset;
  }
  void release() noexcept;

  format::Descriptor memory_;
  void* base_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace heaptape::replayer
