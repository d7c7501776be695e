#include "replayer/measure/fragmentation.h"

#include <algorithm>

namespace heaptape::replayer {
namespace {

double ratio(std::uint64_t numerator, std::uint64_t denominator) {
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

MeasureAt measure_at(const CurvePoint& p, CostField cost) {
  return {p.requested_bytes == 0 ? 0.0 : ratio(p.*cost, p.requested_bytes) - 1, p.event_index, p.time_ns};
}

}  // namespace

const CurvePoint* peak_of(std::span<const CurvePoint> curve, CostField field) {
  const bool any_exact = std::any_of(curve.begin(), curve.end(), [](const CurvePoint& p) { return p.exact; });
  const CurvePoint* best = nullptr;
  for (const CurvePoint& p : curve) {
    if ((p.exact || !any_exact) && (best == nullptr || p.*field > best->*field)) {
      best = &p;
    }
  }
  return best;
}

Fragmentation measure_fragmentation(std::span<const CurvePoint> curve, CostField cost) {
  Fragmentation f;
  double weights = 0.0;
  double sum = 0.0;
  double cost_sum = 0.0;
  double requested_sum = 0.0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const CurvePoint& p = curve[i];
    if (p.requested_bytes == 0) {
      continue;
    }
    // Half the way to each neighbour; a curve of one point is that point.
    const std::uint64_t before = curve[i == 0 ? 0 : i - 1].op_index;
    const std::uint64_t after = curve[std::min(i + 1, curve.size() - 1)].op_index;
    const double weight = curve.size() == 1 ? 1.0 : static_cast<double>(after - before) / 2;
    weights += weight;
    sum += weight * ratio(p.*cost, p.requested_bytes);
    cost_sum += weight * static_cast<double>(p.*cost);
    requested_sum += weight * static_cast<double>(p.requested_bytes);
  }
  const CurvePoint* most_requested = peak_of(curve, &CurvePoint::requested_bytes);
  const CurvePoint* most_cost = peak_of(curve, cost);
  if (weights <= 0.0 || most_requested->requested_bytes == 0) {
    return f;
  }
  f.mean_over_run = sum / weights - 1;
  f.integral_ratio = cost_sum / requested_sum - 1;
  f.at_requested_peak = measure_at(*most_requested, cost);
  f.at_own_peak = measure_at(*most_cost, cost);
  f.own_peak_over_requested_peak = ratio(most_cost->*cost, most_requested->requested_bytes) - 1;
  return f;
}

}  // namespace heaptape::replayer
