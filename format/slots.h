// Which slot an object gets: the one rule that the merge and the reader of packed tapes share.
//
// Guarantees: the slot released last is acquired first; a new one is taken only when none is free,
// so `slots()` is the largest number held at the same time. A packed tape therefore stores only the
// slots that are released: the acquired ones follow. Who calls must not release a slot that is not
// held (the packed reader checks its input first). Constant time; four bytes per free slot.
#pragma once

#include <cstdint>
#include <vector>

#include "format/event.h"

namespace heaptape::format {

class SlotAllocator {
 public:
  // `SlotIndex::none` once 2^32 - 1 slots are held.
  [[nodiscard]] SlotIndex acquire() {
    if (!released_.empty()) {
      const SlotIndex slot = released_.back();
      released_.pop_back();
      return slot;
    }
    if (slots_ == static_cast<std::uint32_t>(SlotIndex::none)) {
      return SlotIndex::none;
    }
    return SlotIndex{slots_++};
  }

  void release(SlotIndex slot) { released_.push_back(slot); }

  // Length that an array indexed by the slots handed out so far needs.
  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::uint32_t held() const noexcept {
    return slots_ - static_cast<std::uint32_t>(released_.size());
  }

 private:
  std::vector<SlotIndex> released_;  // a stack: last in, first out
  std::uint32_t slots_ = 0;
};

}  // namespace heaptape::format
