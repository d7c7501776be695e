#include "replayer/measure/space.h"

#include <algorithm>

#include "replayer/measure/names.h"

namespace heaptape::replayer {

namespace {

std::vector<CurvePoint> curve_of(const Plan& plan, const EngineOutcome& outcome) {
  std::vector<CurvePoint> curve;
  for (std::size_t i = 0; i < outcome.instants.size(); ++i) {
    const PlanInstant& p = plan.instants()[i];
    const InstantResult& r = outcome.instants[i];
    if (r.method == FootprintMethod::none) {
      continue;  // not read
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
                     .exact = r.method == FootprintMethod::smaps});
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
    if (p.requested_bytes != r.requested_bytes || p.op_index != r.op_index ||
        p.live_objects != r.live_objects) {
      return fmt::format("inconsistent: {} bytes are live at instant {} by the plan, {} by the engine",
                         p.requested_bytes, i, r.requested_bytes);
    }
  }
  return {};
}

std::optional<std::size_t> cheap_peak(const EngineOutcome& outcome) {
  const auto& all = outcome.instants;
  const auto peak = std::max_element(
      all.begin(), all.end(),
      [](const InstantResult& a, const InstantResult& b) { return a.resident_bytes < b.resident_bytes; });
  if (peak == all.end() || peak->method == FootprintMethod::smaps) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(peak - all.begin());
}

SpaceResult space_of(const Plan& plan, const EngineOutcome& outcome) {
  SpaceResult s;
  s.requested_peak_bytes = plan.header().peak_requested_bytes;
  s.curve = curve_of(plan, outcome);
  for (const InstantResult& r : outcome.instants) {
    if (r.resident_bytes >= s.peak_resident_bytes) {
      s.peak_resident_bytes = r.resident_bytes;
      s.peak_resident_method = name_of(r.method);
    }
    if (r.method != FootprintMethod::smaps) {
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
