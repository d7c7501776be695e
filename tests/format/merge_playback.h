// Plays a simulated recording into a merge and compares what comes out with what truly happened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/merge.h"
#include "tests/format/merge_simulation.h"
#include "tests/format/merge_support.h"

namespace heaptape::format::merge_test {

struct Outcome {
  MergeReport report;
  std::uint64_t wrong_pairs = 0;    // events that acquire or release another object than they did
  std::uint64_t wrong_implied = 0;  // implied releases of an object that was released on the tape
  std::string first_wrong;
  std::size_t most_buffered = 0;
  std::size_t two_intervals = 0;  // most events within two successive intervals
  std::uint64_t steps = 0;
  std::vector<Event> events;
};

struct Playback {
  bool complete = true;
  std::size_t until_item = static_cast<std::size_t>(-1);  // the tape is cut before this item
};

// Fatal failures (GoogleTest) where an invariant is broken.
[[nodiscard]] Outcome play(const Recording& recording, const Playback& how = {});

}  // namespace heaptape::format::merge_test
