#include "analyzers/totals.h"

#include <algorithm>

namespace heaptape::analyzers {

using format::Event;
using format::EventFlag;

// Once per call, a dozen predictable branches.
void TotalsAnalysis::count_call(const Event& e) noexcept {
  Totals& t = totals_;
  if (t.events == 0) {
    t.first_time_ns = e.time_ns;
  }
  t.last_time_ns = e.time_ns;
  ++t.events;
  ++t.calls_by_kind[static_cast<std::size_t>(e.kind) % t.calls_by_kind.size()];
  if (is_realloc(e.kind)) {
    t.realloc_null += e.has(EventFlag::null_argument) ? 1 : 0;
    t.realloc_zero += e.size_bytes == 0 && !e.has(EventFlag::null_argument) ? 1 : 0;
    t.realloc_in_place += e.has(EventFlag::in_place) ? 1 : 0;
    t.unfinished_reallocs += e.has(EventFlag::unfinished) ? 1 : 0;
  } else if (is_release(e.kind)) {
    t.free_null += e.has(EventFlag::null_argument) ? 1 : 0;
  }
  if (e.has(EventFlag::failed)) {
    ++t.failed_calls;
    t.failed_bytes += e.size_bytes;
    t.largest_failed_request = std::max(t.largest_failed_request, e.size_bytes);
  }
  t.unknown_releases += e.has(EventFlag::unknown_release) ? 1 : 0;
  t.repaired += e.has(EventFlag::repaired) ? 1 : 0;
}

void TotalsAnalysis::consume(std::span<const Event> events) {
  Totals& t = totals_;
  for (const Event& e : events) {
    if (is_call(e)) {
      count_call(e);
    } else if (e.has(EventFlag::cut)) {
      ++t.implied_by_damage;
    } else {
      ++t.implied_releases;
    }
    if (releases(e)) {
      t.end_live_bytes -= e.released_size_bytes;
      --t.end_live_objects;
    }
    if (acquires(e)) {
      ++t.blocks;
      t.total_alloc_bytes += e.size_bytes;
      t.zero_size_allocs += e.size_bytes == 0 ? 1 : 0;
      t.largest_request = std::max(t.largest_request, e.size_bytes);
      t.end_live_bytes += e.size_bytes;
      ++t.end_live_objects;
      t.peak_live_objects = std::max(t.peak_live_objects, t.end_live_objects);
      if (t.end_live_bytes > t.peak_live_bytes) {
        t.peak_live_bytes = t.end_live_bytes;
        t.peak_event = t.events;
        t.peak_time_ns = e.time_ns;
        t.objects_at_peak = t.end_live_objects;
      }
    }
  }
}

}  // namespace heaptape::analyzers
