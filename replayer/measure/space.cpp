#include "replayer/measure/space.h"

#include <algorithm>

#include "replayer/measure/names.h"

namespace heaptape::replayer {

namespace {

// A reading costs some 13 ms at 230 MB.
constexpr std::size_t most_exact_readings = 200;

// Allocators give memory back with MADV_FREE: it stays resident until somebody needs it. Exact
// readings leave it out, cheap ones cannot see it and would count it; the two do not mix.
bool holds_lazy_memory(const EngineOutcome& outcome) {
  return std::any_of(outcome.instants.begin(), outcome.instants.end(),
                     [](const InstantResult& r) { return r.lazy_free_bytes != 0; });
}

std::vector<CurvePoint> curve_of(const Plan& plan, const EngineOutcome& outcome) {
  std::vector<CurvePoint> curve;
  const bool only_exact = holds_lazy_memory(outcome);
  for (std::size_t i = 0; i < outcome.instants.size(); ++i) {
    const PlanInstant& p = plan.instants()[i];
    const InstantResult& r = outcome.instants[i];
    const bool is_exact = r.method == FootprintMethod::smaps;
    if (r.method == FootprintMethod::none || (only_exact && !is_exact)) {
      continue;
    }
    curve.push_back({.op_index = p.op_index,
                     .event_index = p.event_index,
                     .time_ns = p.time_ns,
                     .requested_bytes = r.requested_bytes,
                     .usable_bytes = r.usable_bytes,
                     .live_page_bytes = r.live_page_bytes,
                     .live_huge_bytes = r.live_huge_bytes,
                     .resident_bytes = r.resident_bytes,
                     .committed_bytes = r.committed_bytes,
                     .reserved_bytes = r.reserved_bytes,
                     .live_objects = r.live_objects,
                     .exact = is_exact});
  }
  return curve;
}

double occupancy(std::uint64_t requested_bytes, std::uint64_t page_bytes) {
  return page_bytes == 0 ? 0.0 : static_cast<double>(requested_bytes) / static_cast<double>(page_bytes);
}

}  // namespace

std::string digest_text(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

std::string space_contradiction(const Plan& plan, const EngineOutcome& outcome) {
  for (std::size_t i = 0; i < outcome.instants.size() && outcome.result.failed_allocations == 0; ++i) {
    const PlanInstant& p = plan.instants()[i];
    const InstantResult& r = outcome.instants[i];
    if (p.op_index != r.op_index || p.requested_bytes != r.requested_bytes) {
      return fmt::format(
          "inconsistent at instant {}: {} bytes are live after {} calls by the plan, {} after {} by the "
          "engine",
          i, p.requested_bytes, p.op_index, r.requested_bytes, r.op_index);
    }
    // Fewer are possible: an allocator may return null for a block of no bytes.
    if (r.live_objects > p.live_objects) {
      return fmt::format("inconsistent at instant {}: {} blocks are live by the plan, {} by the engine", i,
                         p.live_objects, r.live_objects);
    }
  }
  return {};
}

std::vector<std::size_t> exact_readings_needed(const EngineOutcome& outcome) {
  const auto& all = outcome.instants;
  std::vector<std::size_t> needed;
  if (holds_lazy_memory(outcome)) {
    const std::size_t stride = all.size() / most_exact_readings + 1;
    for (std::size_t i = 0; i < all.size(); i += stride) {
      needed.push_back(i);
    }
    return needed;
  }
  // Of equal heights the exact one: then nothing is to be done.
  const auto peak =
      std::max_element(all.begin(), all.end(), [](const InstantResult& a, const InstantResult& b) {
        return a.resident_bytes != b.resident_bytes
                   ? a.resident_bytes < b.resident_bytes
                   : a.method != FootprintMethod::smaps && b.method == FootprintMethod::smaps;
      });
  if (peak != all.end() && peak->method != FootprintMethod::smaps) {
    needed.push_back(static_cast<std::size_t>(peak - all.begin()));
  }
  return needed;
}

SpaceResult space_of(const Plan& plan, const EngineOutcome& outcome) {
  SpaceResult s;
  s.requested_peak_bytes = plan.header().peak_requested_bytes;
  s.curve = curve_of(plan, outcome);
  const bool only_exact = holds_lazy_memory(outcome);
  for (const InstantResult& r : outcome.instants) {
    const bool is_exact = r.method == FootprintMethod::smaps;
    if (only_exact && !is_exact) {
      continue;
    }
    if (r.resident_bytes > s.peak_resident_bytes || s.peak_resident_method.empty() ||
        (r.resident_bytes == s.peak_resident_bytes && is_exact)) {
      s.peak_resident_bytes = r.resident_bytes;
      s.peak_resident_method = name_of(r.method);
    }
    if (!is_exact) {
      s.curve_method = name_of(r.method);
    }
  }
  s.final_resident_bytes = outcome.instants.empty() ? 0 : outcome.instants.back().resident_bytes;
  s.after_purge_resident_bytes = outcome.result.after_purge.resident_bytes;
  s.purged = outcome.result.purged != 0;
  s.fixed_resident_bytes = outcome.result.fixed_resident_bytes;
  s.resident = measure_fragmentation(s.curve, &CurvePoint::resident_bytes);
  s.live_pages = measure_fragmentation(s.curve, &CurvePoint::live_page_bytes);
  if (const CurvePoint* peak = peak_of(s.curve, &CurvePoint::requested_bytes); peak != nullptr) {
    s.page_occupancy = occupancy(peak->requested_bytes, peak->live_page_bytes);
    s.huge_page_occupancy = occupancy(peak->requested_bytes, peak->live_huge_bytes);
  }
  s.has_usable_size = outcome.result.has_usable_size != 0;
  s.randomised = outcome.result.randomised != 0;
  s.order_digest = digest_text(outcome.result.order_digest);
  s.placement_digest =
      outcome.result.placement_valid != 0 ? digest_text(outcome.result.placement_digest) : "";
  return s;
}

}  // namespace heaptape::replayer
