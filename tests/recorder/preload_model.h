// What tests of the preload say about recorded events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recorder/ring/reader.h"

namespace heaptape::preload_test {

// The events between the marks of tests/guests/guest.h; empty if a mark is missing.
[[nodiscard]] std::vector<ring::RingRecord> between_marks(const std::vector<ring::RingRecord>& events);

// One line for an event without its address, stamp and site: "malloc 101", "aligned_alloc 256 @128",
// "realloc begin 207", "calloc 77 failed", "free" ("free null").
[[nodiscard]] std::string told(const ring::RingRecord& event);
[[nodiscard]] std::vector<std::string> told(const std::vector<ring::RingRecord>& events);

// Plays the events in their order on a set of live addresses.
struct Life {
  std::uint64_t births = 0;
  std::uint64_t deaths = 0;
  std::uint64_t born_twice = 0;   // acquires of an address that is live
  std::uint64_t died_unborn = 0;  // releases of an address that is not
  std::uint64_t live_at_end = 0;
  std::uint64_t failed = 0;
};
[[nodiscard]] Life live_through(const std::vector<ring::RingRecord>& events);

}  // namespace heaptape::preload_test
