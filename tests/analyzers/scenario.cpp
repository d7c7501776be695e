#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers::testing {

Event& Scenario::push(Kind kind) {
  Event& e = events_.emplace_back();
  e.index = events_.size() - 1;
  e.time_ns = time_ns_;
  e.thread = format::ThreadIndex{thread_};
  e.kind = kind;
  return e;
}

void Scenario::give(Event& e, std::uint64_t size) {
  const ObjectId object{++objects_};
  if (e.released_slot == format::SlotIndex::none) {
    e.slot = slots_.acquire();
  } else {
    e.slot = e.released_slot;
  }
  e.object = object;
  e.address = 0x1000 * objects_;
  e.size_bytes = size;
  live_[object] = {size, e.slot, e.address};
}

void Scenario::take(Event& e, ObjectId object) {
  const Block block = live_.at(object);
  e.released = object;
  e.released_slot = block.slot;
  e.released_size_bytes = block.size;
  e.released_address = block.address;
  live_.erase(object);
}

ObjectId Scenario::acquire(std::uint64_t size, Kind kind, std::uint64_t alignment) {
  Event& e = push(kind);
  e.alignment = alignment;
  give(e, size);
  return e.object;
}

void Scenario::fail(std::uint64_t size, Kind kind) {
  Event& e = push(kind);
  e.size_bytes = size;
  e.set(EventFlag::failed);
}

ObjectId Scenario::resize(ObjectId old, std::uint64_t size, bool in_place) {
  Event& e = push(Kind::realloc);
  if (old == ObjectId::none) {
    e.set(EventFlag::null_argument);
  } else {
    take(e, old);
  }
  give(e, size);
  if (in_place) {
    e.set(EventFlag::in_place);
    e.address = e.released_address;
  }
  return e.object;
}

void Scenario::resize_to_nothing(ObjectId old) {
  Event& e = push(Kind::realloc);
  take(e, old);
  slots_.release(e.released_slot);
  e.set(EventFlag::freeing_realloc);
}

void Scenario::resize_in_vain(ObjectId old, std::uint64_t size) {
  Event& e = push(Kind::realloc);
  e.size_bytes = size;
  e.set(EventFlag::failed);
  if (old == ObjectId::none) {
    e.set(EventFlag::null_argument);
  }
}

void Scenario::resize_unfinished(ObjectId /*old*/, std::uint64_t size) {
  Event& e = push(Kind::realloc);
  e.size_bytes = size;
  e.set(EventFlag::unfinished);
}

void Scenario::release(ObjectId object, Kind kind) {
  Event& e = push(kind);
  take(e, object);
  slots_.release(e.released_slot);
}

void Scenario::release_null(Kind kind) { push(kind).set(EventFlag::null_argument); }

void Scenario::release_unknown(Kind kind) {
  Event& e = push(kind);
  e.released_address = 0xdead0;
  e.set(EventFlag::unknown_release);
}

void Scenario::imply_release(ObjectId object, bool cut) {
  Event& e = push(Kind::free);
  take(e, object);
  slots_.release(e.released_slot);
  e.set(EventFlag::implied);
  if (cut) {
    e.set(EventFlag::cut);
  }
}

void Scenario::trim() { push(Kind::malloc_trim); }

std::vector<ObjectId> Scenario::live() const {
  std::vector<ObjectId> objects;
  objects.reserve(live_.size());
  for (const auto& [object, block] : live_) {
    objects.push_back(object);
  }
  return objects;
}

std::vector<Event> random_events(std::uint64_t seed, std::size_t calls) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  constexpr Kind acquires[] = {Kind::malloc,
                               Kind::calloc,
                               Kind::posix_memalign,
                               Kind::aligned_alloc,
                               Kind::operator_new,
                               Kind::operator_new_array,
                               Kind::memalign,
                               Kind::valloc,
                               Kind::pvalloc,
                               Kind::malloc,
                               Kind::operator_new_nothrow};
  constexpr Kind releases[] = {Kind::free,
                               Kind::free,
                               Kind::cfree,
                               Kind::operator_delete,
                               Kind::operator_delete_array,
                               Kind::operator_delete_sized};
  Scenario s;
  std::vector<ObjectId> live;
  const auto any = [&] {
    const std::size_t at = below(live.size());
    const ObjectId object = live[at];
    live[at] = live.back();
    live.pop_back();
    return object;
  };
  const auto size = [&] { return below(20) == 0 ? 0 : below(std::uint64_t{1} << below(22)); };
  for (std::size_t call = 0; call < calls; ++call) {
    s.on_thread(static_cast<std::uint32_t>(below(4)) * 7).after(static_cast<std::int64_t>(below(5000)));
    const bool grow = live.size() < 100 + below(200);
    const std::uint64_t die = below(100);
    if (live.empty() || (die < 50 && grow)) {
      const Kind kind = acquires[below(std::size(acquires))];
      live.push_back(s.acquire(size(), kind,
                               below(4) == 0    ? std::uint64_t{1} << below(13)
                               : below(40) == 0 ? 24
                                                : 0));
    } else if (die < 80) {
      s.release(any(), releases[below(std::size(releases))]);
    } else if (die < 90) {
      live.push_back(s.resize(below(10) == 0 ? ObjectId::none : any(), size(), false));
    } else if (die < 92) {
      live.push_back(s.resize(any(), size(), true));
    } else if (die < 93) {
      s.resize_to_nothing(any());
    } else if (die < 94) {
      s.fail(size() << 20U);
    } else if (die < 95) {
      s.resize_in_vain(below(2) == 0 ? ObjectId::none : live.front(), size());
    } else if (die < 97) {
      s.release_null();
    } else if (die < 98) {
      s.release_unknown();
    } else if (die < 99) {
      s.imply_release(any(), below(2) == 0);
    } else {
      below(2) == 0 ? s.trim() : s.resize_unfinished(live.front(), size());
    }
  }
  return s.events();
}

}  // namespace heaptape::analyzers::testing
