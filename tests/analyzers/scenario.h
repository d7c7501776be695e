// Makes merged events as a cursor would, call by call, for tests of the analyses.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "format/event.h"
#include "format/slots.h"

namespace heaptape::analyzers::testing {

using format::Event;
using format::EventFlag;
using format::Kind;
using format::ObjectId;

class Scenario {
 public:
  Scenario& on_thread(std::uint32_t thread) {
    thread_ = thread;
    return *this;
  }
  Scenario& after(std::int64_t ns) {
    time_ns_ += ns;
    return *this;
  }
  ObjectId acquire(std::uint64_t size, Kind kind = Kind::malloc, std::uint64_t alignment = 0);
  void fail(std::uint64_t size, Kind kind = Kind::malloc);
  ObjectId resize(ObjectId old, std::uint64_t size, bool in_place = false);  // old none: realloc(NULL, n)
  void resize_to_nothing(ObjectId old);                                      // realloc(p, 0) that frees
  void resize_in_vain(ObjectId old, std::uint64_t size);                     // null result
  void resize_unfinished(ObjectId old, std::uint64_t size);
  void release(ObjectId object, Kind kind = Kind::free);
  void release_null(Kind kind = Kind::free);
  void release_unknown(Kind kind = Kind::free);
  void imply_release(ObjectId object, bool cut = false);
  void trim();

  [[nodiscard]] std::vector<Event>& events() noexcept { return events_; }
  [[nodiscard]] std::vector<ObjectId> live() const;

 private:
  struct Block {
    std::uint64_t size;
    format::SlotIndex slot;
    std::uint64_t address;
  };
  Event& push(Kind kind);
  void take(Event& e, ObjectId object);
  void give(Event& e, std::uint64_t size);

  std::vector<Event> events_;
  std::map<ObjectId, Block> live_;
  format::SlotAllocator slots_;
  std::uint64_t objects_ = 0;
  std::uint32_t thread_ = 0;
  std::int64_t time_ns_ = 0;
};

// `calls` random calls of four threads: all kinds and all facts, about 200 live blocks.
[[nodiscard]] std::vector<Event> random_events(std::uint64_t seed, std::size_t calls);

}  // namespace heaptape::analyzers::testing
