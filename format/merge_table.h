// The merge's table of live addresses: address -> slot.
//
// Guarantees: claim, find and release take constant time on average whatever the addresses are (the
// hash is seeded at random, so a tape cannot be made to collide); erasing leaves no tombstones.
// Addresses that lie near each other in the recorded heap lie near each other here: 16 neighbouring
// 16-byte granules share four cache lines, because a program frees what it used lately. Costs 32 to
// 64 bytes per address at the largest number ever live. Address 0 is no key. Not thread-safe.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "format/event.h"

namespace heaptape::format {

class AddressTable {
 public:
  struct Claim {
    SlotIndex* slot;  // of the address; valid until the next claim or release
    bool fresh;       // the address was not there: the caller must store its slot
  };

  AddressTable() : cells_(smallest) {
    std::random_device random;
    seed_ = (std::uint64_t{random()} << 32) ^ random();
  }

  [[nodiscard]] Claim claim(std::uint64_t address) {
    if (2 * (size_ + 1) > cells_.size()) {
      grow();
    }
    Cell& cell = cells_[place_of(address)];
    if (cell.address == address) {
      return {&cell.slot, false};
    }
    cell.address = address;
    ++size_;
    return {&cell.slot, true};
  }

  [[nodiscard]] bool contains(std::uint64_t address) const noexcept {
    return cells_[place_of(address)].address == address;
  }

  // The slot the address had; none if it was not there.
  SlotIndex release(std::uint64_t address) noexcept {
    std::size_t hole = place_of(address);
    if (cells_[hole].address != address) {
      return SlotIndex::none;
    }
    const SlotIndex slot = cells_[hole].slot;
    // Later cells of the run move up into the hole, unless that would put them before their home.
    for (std::size_t i = next(hole); cells_[i].address != 0; i = next(i)) {
      if (distance(home(cells_[i].address), i) >= distance(hole, i)) {
        cells_[hole] = cells_[i];
        hole = i;
      }
    }
    cells_[hole] = Cell{};
    --size_;
    return slot;
  }

  // Brings the address' cache line in early: a miss costs more than the rest of an event.
  void prefetch(std::uint64_t address) const noexcept { __builtin_prefetch(&cells_[home(address)], 1); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Cell {
    std::uint64_t address = 0;
    SlotIndex slot = SlotIndex::none;
  };
  static constexpr std::size_t smallest = 1024;
  static constexpr std::uint64_t granule_bits = 0xF0;  // which of 16 granules within 256 bytes

  // Groups of 16 cells are scattered; within a group the granule's number is the place.
  [[nodiscard]] std::size_t home(std::uint64_t address) const noexcept {
    std::uint64_t h = ((address & ~granule_bits) ^ seed_) * 0x9E3779B97F4A7C15ULL;
    h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ULL;
    return (static_cast<std::size_t>(h >> group_shift_) << 4) | ((address & granule_bits) >> 4);
  }
  [[nodiscard]] std::size_t next(std::size_t i) const noexcept { return (i + 1) & (cells_.size() - 1); }
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const noexcept {
    return (to - from) & (cells_.size() - 1);
  }
  // Where the address is, or the empty cell where it would go. At most half the cells are taken.
  [[nodiscard]] std::size_t place_of(std::uint64_t address) const noexcept {
    std::size_t i = home(address);
    while (cells_[i].address != address && cells_[i].address != 0) {
      i = next(i);
    }
    return i;
  }
  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    --group_shift_;
    for (const Cell& cell : old) {
      if (cell.address != 0) {
        cells_[place_of(cell.address)] = cell;
      }
    }
  }

  std::vector<Cell> cells_;  // a power of two of them
  std::size_t size_ = 0;
  std::uint64_t seed_ = 0;
  int group_shift_ = 64 - std::countr_zero(smallest / 16);
};

}  // namespace heaptape::format
