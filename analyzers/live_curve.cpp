#include "analyzers/live_curve.h"

#include <algorithm>

namespace heaptape::analyzers {

using format::Event;

// Rare: once per interval. Each doubling at least halves a dense curve; a sparse one may need several.
void BoundedCurve::begin_point(std::uint64_t position, std::uint64_t live_bytes) {
  while (points_.size() >= most_points_) {
    ++width_log2_;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < points_.size(); ++at) {
      CurvePoint p = points_[at];
      p.key >>= 1U;
      if (kept != 0 && points_[kept - 1].key == p.key) {
        p.highest_bytes = std::max(p.highest_bytes, points_[kept - 1].highest_bytes);
        p.lowest_bytes = std::min(p.lowest_bytes, points_[kept - 1].lowest_bytes);
        points_[kept - 1] = p;
      } else {
        points_[kept++] = p;
      }
    }
    points_.resize(kept);
  }
  const std::uint64_t key = position >> width_log2_;
  if (points_.empty() || points_.back().key != key) {
    CurvePoint p;
    p.key = key;
    p.highest_bytes = live_bytes;
    p.lowest_bytes = live_bytes;
    points_.push_back(p);
  }
}

void LiveCurveAnalysis::consume(std::span<const Event> events) {
  for (const Event& e : events) {
    calls_ += is_call(e) ? 1 : 0;
    if (releases(e)) {
      live_bytes_ -= e.released_size_bytes;
      --live_objects_;
    }
    if (acquires(e)) {
      live_bytes_ += e.size_bytes;
      ++live_objects_;
    }
    // The merged order is that of causes; time may step back a little where a repair was made.
    latest_ns_ = std::max(latest_ns_, static_cast<std::uint64_t>(std::max<std::int64_t>(e.time_ns, 0)));
    const auto time_ns = static_cast<std::int64_t>(latest_ns_);
    by_call_.add(calls_, calls_, time_ns, live_bytes_, live_objects_);
    by_time_.add(latest_ns_, calls_, time_ns, live_bytes_, live_objects_);
  }
}

void LiveCurveAnalysis::finish(const format::MergeReport& /*merged*/) {
  curve_.by_call = by_call_.points();
  curve_.by_time = by_time_.points();
}

}  // namespace heaptape::analyzers
