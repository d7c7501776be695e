// A model of a recording: threads that allocate, free, resize and hand blocks over in a true order
// that the model knows, stamped and published as recorded programs do it, drained as the collector does.
//
// The stamps are wrong in the ways in which real ones are: acquires too early, releases exact, copies
// of a coarse clock while there is one thread, events published long after they were stamped.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "format/event.h"
#include "format/tape.h"

namespace heaptape::format::merge_test {

struct Shape {
  std::uint64_t seed = 1;
  std::uint32_t threads = 4;
  std::uint32_t calls = 2000;        // of all threads
  std::uint32_t addresses = 64;      // few: they come back at once
  std::uint32_t prefix_calls = 0;    // made while there is one thread, stamped coarsely
  std::uint32_t early_percent = 20;  // of the acquires
  std::uint64_t early_ticks = 5000;  // at most by that much
  std::uint32_t late_permille = 2;   // of the events, published up to `late_ticks` later
  std::uint64_t late_ticks = 200000;
  std::uint64_t pass_ticks = 30000;   // mean time between two passes of the collector
  std::uint32_t marks_percent = 30;   // of the passes
  std::uint32_t resize_percent = 20;  // of the calls
  std::uint64_t gap_ticks = 100;      // mean time between two calls of a thread
  // A stamp so early that it lies before another acquire of the same address, whose block has come and
  // gone meanwhile, leaves no trace of the true order where yet another thread freed that one.
  bool overtaking = false;
  ClockSource clock = ClockSource::tsc;

  [[nodiscard]] std::string name() const;
};

// One recorded call, in its thread's order; what the events of a thread must say one by one.
struct Call {
  std::uint64_t acquired = 0;  // the model's own number of the object, 0: none
  std::uint64_t released = 0;
};

struct Entry {  // a record, and the call that it completes (reallocs: their end)
  RecordedEvent event;
  Call call;
  bool completes = true;
};

struct Block {
  std::uint32_t thread;
  std::vector<Entry> entries;
};
struct MissingBlock {};
using Item = std::variant<Block, Watermark, Gap, MissingBlock>;

struct Recording {
  TapeHeader header;
  std::vector<Item> items;  // in the order of the tape

  [[nodiscard]] std::size_t entries() const;
};

[[nodiscard]] Recording simulate(const Shape& shape);

}  // namespace heaptape::format::merge_test
