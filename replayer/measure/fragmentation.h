// The measures of fragmentation over one replay's curve.
//
// F(t) = S(t) / L(t), where L is the requested bytes of live blocks and S what they cost: resident
// bytes, or the bytes of pages that hold a live block. Time is counted in operations done. The four
// classical measures (Johnstone and Wilson, ISMM 1998), each less one:
//   1. the mean of F over the run          2. F where L is largest
//   3. F where S is largest                4. largest S over largest L
// Peaks are taken at instants that were read exactly where there are any, the mean over all readings
// (trapezoids; moments without live blocks have no F and are left out).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace heaptape::replayer {

// Space at one instant of the replay.
struct CurvePoint {
  std::uint64_t op_index = 0;
  std::uint64_t event_index = 0;
  std::int64_t time_ns = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t usable_bytes = 0;  // 0: the allocator has no such call
  std::uint64_t live_page_bytes = 0;
  std::uint64_t live_huge_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t committed_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t live_objects = 0;
  bool exact = false;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

using CostField = std::uint64_t CurvePoint::*;

struct MeasureAt {
  double value = 0.0;  // F less one
  std::uint64_t event_index = 0;
  std::int64_t time_ns = 0;
  friend bool operator==(const MeasureAt&, const MeasureAt&) = default;
};

struct Fragmentation {
  double mean_over_run = 0.0;                 // 1
  MeasureAt at_requested_peak;                // 2
  MeasureAt at_own_peak;                      // 3
  double own_peak_over_requested_peak = 0.0;  // 4
  double integral_ratio = 0.0;                // time integral of S over that of L, less one
  friend bool operator==(const Fragmentation&, const Fragmentation&) = default;
};

// All zero where no instant has live blocks.
[[nodiscard]] Fragmentation measure_fragmentation(std::span<const CurvePoint> curve, CostField cost);

// The instant of the largest `field`, the first of equals; exact ones only, where there are any.
// Null for an empty curve.
[[nodiscard]] const CurvePoint* peak_of(std::span<const CurvePoint> curve, CostField field);

}  // namespace heaptape::replayer
