// The recording's clock as the collector sees it: ticks that stamp events, nanoseconds for people.
//
// Guarantees: `tick` never runs behind a stamp that a thread has published before. Where the
// processor's counter is not invariant and synchronised, events are stamped by a sequence number
// and `tick` is unused. HEAPTAPE_CLOCK=sequence chooses that for tests. Any thread.
#pragma once

#include <cstdint>

#include "format/tape.h"

namespace heaptape::collector {

[[nodiscard]] format::ClockSource choose_clock();
// The time stamp counter, read after everything before it; 0 where there is none.
[[nodiscard]] std::uint64_t tick_now() noexcept;
[[nodiscard]] std::int64_t monotonic_ns() noexcept;
[[nodiscard]] std::uint64_t unix_ns() noexcept;

struct ClockPair {  // the same instant on both clocks
  std::uint64_t tick = 0;
  std::int64_t ns = 0;
};
[[nodiscard]] ClockPair clock_pair() noexcept;
// Measures for some 2 ms.
[[nodiscard]] double measure_ticks_per_second() noexcept;

}  // namespace heaptape::collector
