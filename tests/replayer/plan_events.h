// Merged events for planner tests: written by hand call by call, or random ones from a seed.
//
// Tape keeps the rules of format/event.h: objects numbered by birth, the slot freed last is reused
// first, a realloc keeps its slot. Its `live` map is an independent account of what must be live.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "format/event.h"

namespace heaptape::replayer {

class Tape {
 public:
  struct Object {
    std::uint64_t size_bytes;
    format::SlotIndex slot;
  };

  std::uint64_t allocate(std::uint32_t thread, std::uint64_t size_bytes,
                         format::Kind kind = format::Kind::malloc, std::uint64_t alignment = 0) {
    format::Event& e = add(thread, kind);
    e.size_bytes = size_bytes;
    e.alignment = alignment;
    return birth(e, take_slot());
  }
  void free(std::uint32_t thread, std::uint64_t object, format::EventFlag flag = format::EventFlag{}) {
    format::Event& e = add(thread, format::Kind::free);
    e.set(flag);
    give_slot(death(e, object));
  }
  std::uint64_t reallocate(std::uint32_t thread, std::uint64_t object, std::uint64_t size_bytes) {
    format::Event& e = add(thread, format::Kind::realloc);
    e.size_bytes = size_bytes;
    const format::SlotIndex slot = death(e, object);
    return birth(e, slot);
  }
  std::uint64_t reallocate_null(std::uint32_t thread, std::uint64_t size_bytes) {
    format::Event& e = add(thread, format::Kind::realloc);
    e.size_bytes = size_bytes;
    e.set(format::EventFlag::null_argument);
    return birth(e, take_slot());
  }
  std::uint64_t reallocate_unknown(std::uint32_t thread, std::uint64_t size_bytes) {
    format::Event& e = add(thread, format::Kind::realloc);
    e.size_bytes = size_bytes;
    e.set(format::EventFlag::unknown_release);
    return birth(e, take_slot());
  }
  void reallocate_to_nothing(std::uint32_t thread, std::uint64_t object) {
    format::Event& e = add(thread, format::Kind::realloc);
    e.set(format::EventFlag::freeing_realloc);
    give_slot(death(e, object));
  }
  // An event that touches no object: failed, unknown_release, null_argument, unfinished.
  void nothing(std::uint32_t thread, format::Kind kind, format::EventFlag flag) {
    add(thread, kind).set(flag);
  }

  [[nodiscard]] const std::vector<format::Event>& events() const { return events_; }
  [[nodiscard]] const std::map<std::uint64_t, Object>& live() const { return live_; }
  [[nodiscard]] std::uint64_t live_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [id, object] : live_) {
      sum += object.size_bytes;
    }
    return sum;
  }

 private:
  format::Event& add(std::uint32_t thread, format::Kind kind) {
    format::Event e;
    e.index = events_.size();
    e.time_ns = static_cast<std::int64_t>(events_.size()) * 100;
    e.thread = format::ThreadIndex{thread};
    e.kind = kind;
    return events_.emplace_back(e);
  }
  std::uint64_t birth(format::Event& e, format::SlotIndex slot) {
    e.object = format::ObjectId{++objects_};
    e.slot = slot;
    live_[objects_] = {e.size_bytes, slot};
    return objects_;
  }
  format::SlotIndex death(format::Event& e, std::uint64_t object) {
    const Object old = live_.at(object);
    live_.erase(object);
    e.released = format::ObjectId{object};
    e.released_slot = old.slot;
    e.released_size_bytes = old.size_bytes;
    return old.slot;
  }
  format::SlotIndex take_slot() {
    if (free_slots_.empty()) {
      return format::SlotIndex{slots_++};
    }
    const format::SlotIndex slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  void give_slot(format::SlotIndex slot) { free_slots_.push_back(slot); }

  std::vector<format::Event> events_;
  std::map<std::uint64_t, Object> live_;
  std::vector<format::SlotIndex> free_slots_;
  std::uint64_t objects_ = 0;
  std::uint32_t slots_ = 0;
};

// `steps` random calls of `threads` threads that free and reallocate each other's blocks; about
// `live_target` live at a time, which breathes, so that there are peaks and valleys.
inline Tape random_tape(std::uint64_t seed, std::size_t steps, std::uint32_t threads,
                        std::size_t live_target) {
  using format::EventFlag;
  using format::Kind;
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Tape tape;
  std::vector<std::uint64_t> ids;
  std::uint32_t thread = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    if (below(4) == 0) {
      thread = static_cast<std::uint32_t>(below(threads));
    }
    const bool growing = (i / (live_target + 1)) % 2 == 0;
    const std::uint64_t dice = below(100);
    if (ids.empty() || (dice < (growing ? 60U : 35U) && ids.size() < 2 * live_target)) {
      const std::uint64_t size = below(10) == 0 ? below(100'000) : below(200);
      switch (below(8)) {
        case 0:
          ids.push_back(tape.allocate(thread, size, Kind::calloc));
          break;
        case 1:
          ids.push_back(tape.allocate(thread, size, Kind::posix_memalign, std::uint64_t{8} << below(8)));
          break;
        case 2:
          ids.push_back(tape.allocate(thread, size, Kind::operator_new));
          break;
        case 3:
          ids.push_back(tape.reallocate_null(thread, size));
          break;
        case 4:
          ids.push_back(tape.reallocate_unknown(thread, size));
          break;
        default:
          ids.push_back(tape.allocate(thread, size));
      }
      continue;
    }
    const std::size_t victim = below(ids.size());
    const auto forget = [&] {
      ids[victim] = ids.back();
      ids.pop_back();
    };
    if (dice < 70) {
      tape.free(thread, ids[victim], below(50) == 0 ? EventFlag::implied : EventFlag{});
      forget();
    } else if (dice < 85) {
      ids[victim] = tape.reallocate(thread, ids[victim], below(20) == 0 ? 0 : below(5'000));
    } else if (dice < 87) {
      tape.reallocate_to_nothing(thread, ids[victim]);
      forget();
    } else if (dice < 90) {
      tape.nothing(thread, Kind::malloc, EventFlag::failed);
    } else if (dice < 93) {
      tape.nothing(thread, Kind::free, EventFlag::unknown_release);
    } else if (dice < 95) {
      tape.nothing(thread, Kind::free, EventFlag::null_argument);
    } else if (dice < 97) {
      tape.nothing(thread, Kind::realloc, EventFlag::unfinished);
    } else {
      tape.nothing(thread, Kind::malloc_trim, EventFlag{});
    }
  }
  return tape;
}

}  // namespace heaptape::replayer
