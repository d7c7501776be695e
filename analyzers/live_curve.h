// The live bytes of the program as a curve of bounded length, by calls and by time.
//
// A point covers an interval of the axis and keeps the largest value in it, so that no peak is
// lost, and the value at its end. When there are too many points the intervals double. An interval
// without events has no point: the curve is flat there.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/analysis.h"

namespace heaptape::analyzers {

struct CurvePoint {
  std::uint64_t key = 0;   // which interval of the axis: position / width
  std::uint64_t call = 0;  // of the last event in the interval
  std::int64_t time_ns = 0;
  std::uint64_t live_bytes = 0;  // after it
  std::uint64_t live_objects = 0;
  std::uint64_t highest_bytes = 0;  // in the interval
  std::uint64_t lowest_bytes = 0;
};

// One curve over one axis. Positions never decrease.
class BoundedCurve {
 public:
  explicit BoundedCurve(std::size_t most_points) : most_points_(most_points) {}

  // Costs a shift, a comparison and a few stores.
  void add(std::uint64_t position, std::uint64_t call, std::int64_t time_ns, std::uint64_t live_bytes,
           std::uint64_t live_objects) {
    const std::uint64_t key = position >> width_log2_;
    if (points_.empty() || points_.back().key != key) {
      begin_point(position, live_bytes);
    }
    CurvePoint& p = points_.back();
    p.call = call;
    p.time_ns = time_ns;
    p.live_bytes = live_bytes;
    p.live_objects = live_objects;
    p.highest_bytes = live_bytes > p.highest_bytes ? live_bytes : p.highest_bytes;
    p.lowest_bytes = live_bytes < p.lowest_bytes ? live_bytes : p.lowest_bytes;
  }
  [[nodiscard]] const std::vector<CurvePoint>& points() const noexcept { return points_; }
  [[nodiscard]] std::uint64_t width() const noexcept { return std::uint64_t{1} << width_log2_; }

 private:
  void begin_point(std::uint64_t position, std::uint64_t live_bytes);

  std::size_t most_points_;
  unsigned width_log2_ = 0;
  std::vector<CurvePoint> points_;
};

struct LiveCurve {
  std::vector<CurvePoint> by_call;
  std::vector<CurvePoint> by_time;
};

class LiveCurveAnalysis final : public Analysis {
 public:
  explicit LiveCurveAnalysis(std::size_t most_points = 2000) : by_call_(most_points), by_time_(most_points) {}
  void consume(std::span<const format::Event> events) override;
  void finish(const format::MergeReport& merged) override;
  [[nodiscard]] const LiveCurve& result() const noexcept { return curve_; }

 private:
  BoundedCurve by_call_;
  BoundedCurve by_time_;
  std::uint64_t calls_ = 0;
  std::uint64_t latest_ns_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_objects_ = 0;
  LiveCurve curve_;
};

}  // namespace heaptape::analyzers
