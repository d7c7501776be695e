// What a space run keeps about live blocks, beside the slot table: observers of the replay loop.
//
// SlotLedger writes one entry per slot and may be used by all threads of `deps` at once: an entry
// passes between threads together with its slot. Ledger adds totals and pages; it belongs to the
// holder of the baton and passes on with it, or is filled from the slot table once all are done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replayer/engine/live_pages.h"
#include "replayer/engine/loop.h"

namespace heaptape::replayer::engine {

struct SlotSizes {
  std::uint64_t requested_bytes;
  std::uint64_t usable_bytes;
};

class SlotLedger {
 public:
  SlotLedger(SlotSizes* sizes, std::size_t (*usable)(void*)) noexcept : sizes_(sizes), usable_(usable) {}

  void begins(Lane& lane, const PlanOp* op) noexcept { lane.current = op; }
  void born(const PlanOp& op, void* block) noexcept {
    sizes_[op.slot] = {op.size_bytes, usable_ == nullptr ? 0 : usable_(block)};
  }
  void leaving(const PlanOp&, void*) noexcept {}
  void stayed(const PlanOp&, void*) noexcept {}
  void failed(const PlanOp&) noexcept {}

 private:
  SlotSizes* sizes_;
  std::size_t (*usable_)(void*);
};

class Ledger {
 public:
  Ledger(SlotSizes* sizes, std::size_t (*usable)(void*)) noexcept : sizes_(sizes), usable_(usable) {}
  [[nodiscard]] bool prepare(OwnMemory& memory, std::uint64_t peak_blocks) noexcept {
    return pages_.prepare(memory, 12, peak_blocks) && huge_pages_.prepare(memory, 21, peak_blocks);
  }

  void begins(Lane& lane, const PlanOp* op) noexcept {
    lane.current = op;
    ++op_index_;
  }
  void born(const PlanOp& op, void* block) noexcept {
    sizes_[op.slot] = {op.size_bytes, usable_ == nullptr ? 0 : usable_(block)};
    enter(op.slot, block);
    place(reinterpret_cast<std::uintptr_t>(block));
  }
  void leaving(const PlanOp& op, void* block) noexcept {
    if (block == nullptr) return;
    const SlotSizes& size = sizes_[op.slot];
    requested_bytes -= size.requested_bytes;
    usable_bytes -= size.usable_bytes;
    --live_objects;
    pages_.remove(block, size.requested_bytes);
    huge_pages_.remove(block, size.requested_bytes);
  }
  void stayed(const PlanOp& op, void* block) noexcept {
    enter(op.slot, block);
    place(0);
  }
  void failed(const PlanOp&) noexcept { place(0); }

  // Counts a block that the slot table holds.
  void enter(std::uint32_t slot, void* block) noexcept {
    const SlotSizes& size = sizes_[slot];
    requested_bytes += size.requested_bytes;
    usable_bytes += size.usable_bytes;
    ++live_objects;
    pages_.add(block, size.requested_bytes);
    huge_pages_.add(block, size.requested_bytes);
  }

  [[nodiscard]] std::uint64_t live_page_bytes() const noexcept { return pages_.bytes(); }
  [[nodiscard]] std::uint64_t live_huge_bytes() const noexcept { return huge_pages_.bytes(); }
  [[nodiscard]] std::uint64_t placement_digest() const noexcept { return placement_digest_; }

  std::uint64_t requested_bytes = 0;
  std::uint64_t usable_bytes = 0;
  std::uint64_t live_objects = 0;

 private:
  // Placements count relative to the first block, so that the same layout elsewhere is the same.
  void place(std::uintptr_t address) noexcept {
    if (base_ == 0) base_ = address;
    placement_digest_ =
        mix(mix(placement_digest_, op_index_), address == 0 ? ~std::uint64_t{0} : address - base_);
  }

  SlotSizes* sizes_;
  std::size_t (*usable_)(void*);
  LivePages pages_;
  LivePages huge_pages_;
  std::uint64_t op_index_ = 0;
  std::uintptr_t base_ = 0;
  std::uint64_t placement_digest_ = digest_seed;
};

}  // namespace heaptape::replayer::engine
