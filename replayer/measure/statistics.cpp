#include "replayer/measure/statistics.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace heaptape::replayer {
namespace {

constexpr std::size_t resamples = 10'000;
constexpr std::uint64_t seed = 20'260'101;

// Calls statistic(indices) for each resample and returns the middle 95 % of its values.
template <typename Statistic>
std::pair<double, double> bootstrap(std::size_t count, Statistic statistic) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> indices(count);
  std::vector<double> values;
  values.reserve(resamples);
  for (std::size_t i = 0; i < resamples; ++i) {
    for (std::size_t& index : indices) {
      index = random() % count;
    }
    values.push_back(statistic(indices));
  }
  std::sort(values.begin(), values.end());
  return {values[resamples * 25 / 1000], values[resamples * 975 / 1000 - 1]};
}

double median_at(std::span<const double> values, const std::vector<std::size_t>& indices) {
  std::vector<double> picked;
  picked.reserve(indices.size());
  for (const std::size_t i : indices) {
    picked.push_back(values[i]);
  }
  return median_of(picked);
}

}  // namespace

double median_of(std::span<const double> values) {
  if (values.empty()) {
    return 0.0;
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Estimate estimate_median(std::span<const double> values) {
  if (values.empty()) {
    return {};
  }
  const auto [low, high] = bootstrap(
      values.size(), [&](const std::vector<std::size_t>& indices) { return median_at(values, indices); });
  return {median_of(values), low, high};
}

Estimate estimate_ratio(std::span<const double> numerator, std::span<const double> denominator) {
  const std::size_t count = std::min(numerator.size(), denominator.size());
  if (count == 0) {
    return {};
  }
  const auto [low, high] = bootstrap(count, [&](const std::vector<std::size_t>& indices) {
    return median_at(numerator, indices) / median_at(denominator, indices);
  });
  return {median_of(numerator.first(count)) / median_of(denominator.first(count)), low, high};
}

}  // namespace heaptape::replayer
