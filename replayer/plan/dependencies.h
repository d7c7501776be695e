// Order `deps`: which slot each object gets, and what each thread must wait for.
//
// Guarantees: the slot table is as long as the largest number of objects live at once in merged
// order; two uses of a slot by different threads, one after the other in merged order, always have a
// wait between them (of one object, or of the old and the new one). Every wait names an operation
// that came earlier in merged order: hence no set of threads can wait in a circle. A wait that an
// earlier wait of the same thread on the same thread already covers is left out.
// Memory: slots, plus one entry per pair of threads that ever waited. O(1) per operation.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace heaptape::replayer {

// A thread and the number of its operations that must be done, waits included.
struct Position {
  std::uint32_t thread = 0;
  std::uint64_t done = 0;
};

class Dependencies {
 public:
  // A slot for an object that `thread` allocates: the one it freed last itself, else the one that
  // was freed longest ago by any other (the most likely to be known already), else a new one.
  [[nodiscard]] std::uint32_t take_slot(std::uint32_t thread);
  // The slot's object died on `thread`. Call after `used`.
  void give_slot(std::uint32_t slot, std::uint32_t thread);

  // True where `thread` must wait for `*position` before it may use the slot; it then counts as done.
  [[nodiscard]] bool must_wait(std::uint32_t slot, std::uint32_t thread, Position* position);
  // `user.thread` used the slot as its operation number `user.done - 1`.
  void used(std::uint32_t slot, Position user) { slots_[slot].last = user; }

  [[nodiscard]] std::uint32_t slot_count() const noexcept {
    return static_cast<std::uint32_t>(slots_.size());
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  // A free slot stands in two lists, both from the oldest to the newest: of its thread and of all.
  struct Links {
    std::uint32_t older = none;
    std::uint32_t newer = none;
  };
  struct Slot {
    Position last;
    std::uint32_t owner = none;  // thread that freed it
    Links mine;
    Links all;
  };
  struct Ends {
    std::uint32_t oldest = none;
    std::uint32_t newest = none;
  };
  template <Links Slot::*links>
  void append(Ends& ends, std::uint32_t slot);
  template <Links Slot::*links>
  void unlink(Ends& ends, std::uint32_t slot);

  std::vector<Slot> slots_;
  std::vector<Ends> free_of_thread_;
  Ends free_of_all_;
  std::unordered_map<std::uint64_t, std::uint64_t> waited_;  // (waiter, waited for) -> position
};

}  // namespace heaptape::replayer
