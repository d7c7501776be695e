// Medians and how sure we are of them: percentile bootstrap, 95 %, from a fixed seed.
//
// Pure functions; the same input always gives the same output. With five runs the interval of a
// median is as wide as the runs themselves; with one run it is a point and says nothing.
#pragma once

#include <span>

namespace heaptape::replayer {

struct Estimate {
  double median = 0.0;
  double low = 0.0;  // 95 % interval
  double high = 0.0;
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

// Of an empty span: 0.
[[nodiscard]] double median_of(std::span<const double> values);
[[nodiscard]] Estimate estimate_median(std::span<const double> values);
// median(numerator) / median(denominator); the two are paired, run by run (same round, same state of
// the machine), and are resampled in pairs. Denominators must be above zero.
[[nodiscard]] Estimate estimate_ratio(std::span<const double> numerator, std::span<const double> denominator);

}  // namespace heaptape::replayer
