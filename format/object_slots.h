// Where each live object of a packed tape lies: its number -> its slot.
//
// Guarantees: constant time on average for any numbers that grow; memory for what is live, and half a
// megabyte. Most objects die young: the latest births lie in a ring; those that outlive it move to a hash
// table. Not thread-safe.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "format/event.h"
#include "format/merge_table.h"

namespace heaptape::format {

class ObjectSlots {
 public:
  // `object` is larger than any before.
  void born(std::uint64_t object, SlotIndex slot) {
    Entry& entry = ring_[object % ring_size];
    if (entry.slot != SlotIndex::none) {
      *old_.claim(key(entry.object)).slot = entry.slot;
    }
    entry = {object, slot};
  }

  // The slot the object had; none if it is not live.
  [[nodiscard]] SlotIndex release(std::uint64_t object) noexcept {
    Entry& entry = ring_[object % ring_size];
    if (entry.object == object) {
      const SlotIndex slot = entry.slot;
      entry.slot = SlotIndex::none;
      return slot;
    }
    return object == 0 ? SlotIndex::none : old_.release(key(object));
  }

 private:
  static constexpr std::size_t ring_size = std::size_t{1} << 15;
  struct Entry {
    std::uint64_t object = 0;
    SlotIndex slot = SlotIndex::none;
  };
  // Neighbouring numbers share the table's cache lines as neighbouring addresses do.
  static std::uint64_t key(std::uint64_t object) noexcept { return std::rotl(object, 4); }

  std::vector<Entry> ring_ = std::vector<Entry>(ring_size);
  AddressTable old_;
};

}  // namespace heaptape::format
