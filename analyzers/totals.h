// The totals of a tape: calls by kind, bytes, peaks, what is live at the end, failed calls.
//
// docs/stats.md defines every number. No table at all: an event carries the size it releases.
#pragma once

#include <array>
#include <cstdint>

#include "analyzers/analysis.h"

namespace heaptape::analyzers {

struct Totals {
  std::uint64_t events = 0;                     // calls; implied releases are none
  std::array<std::uint64_t, 64> calls_by_kind;  // indexed by Kind
  std::uint64_t free_null = 0;                  // any release of a null pointer
  std::uint64_t realloc_null = 0;               // realloc(NULL, n)
  std::uint64_t realloc_zero = 0;               // realloc(p, 0), whatever came of it
  std::uint64_t realloc_in_place = 0;           // returned its argument
  std::uint64_t zero_size_allocs = 0;           // size 0, and a block came of it
  std::uint64_t failed_calls = 0;               // null result
  std::uint64_t failed_bytes = 0;               // asked for by failed calls (modulo 2^64)
  std::uint64_t largest_failed_request = 0;
  std::uint64_t blocks = 0;             // acquired, reallocs included
  std::uint64_t total_alloc_bytes = 0;  // of every acquire and realloc that succeeded
  std::uint64_t largest_request = 0;    // of those
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t peak_event = 0;  // number of calls up to and with the one that first reached the peak
  std::int64_t peak_time_ns = 0;
  std::uint64_t objects_at_peak = 0;    // at the peak of bytes
  std::uint64_t peak_live_objects = 0;  // largest number at any time; maybe at another moment
  std::uint64_t end_live_bytes = 0;
  std::uint64_t end_live_objects = 0;
  std::uint64_t unknown_releases = 0;     // of addresses not live
  std::uint64_t implied_releases = 0;     // by contradiction
  std::uint64_t implied_by_damage = 0;    // by a gap, damage or the cut
  std::uint64_t repaired = 0;             // held back by the merge
  std::uint64_t unfinished_reallocs = 0;  // begun when the program died
  std::int64_t first_time_ns = 0;
  std::int64_t last_time_ns = 0;

  [[nodiscard]] std::uint64_t calls(format::Kind kind) const noexcept {
    const auto at = static_cast<std::size_t>(kind);
    return at < calls_by_kind.size() ? calls_by_kind[at] : 0;
  }
};

class TotalsAnalysis final : public Analysis {
 public:
  void consume(std::span<const format::Event> events) override;
  [[nodiscard]] const Totals& result() const noexcept { return totals_; }

 private:
  void count_call(const format::Event& e) noexcept;

  Totals totals_{};
};

}  // namespace heaptape::analyzers
