#include "replayer/plan/live_curve.h"

#include <algorithm>

namespace heaptape::replayer {
namespace {

PlanInstant instant_at(const Moment& m, bool exact) {
  PlanInstant instant{};
  instant.op_index = m.op_index;
  instant.event_index = m.event_index;
  instant.time_ns = m.time_ns;
  instant.requested_bytes = m.requested_bytes;
  instant.live_objects = m.live_objects;
  instant.exact = exact ? 1 : 0;
  return instant;
}

}  // namespace

// An even number, so that halving leaves no bucket without a partner.
LiveCurve::LiveCurve(std::size_t max_buckets)
    : max_buckets_(std::max<std::size_t>(2, max_buckets & ~std::size_t{1})) {
  buckets_.reserve(max_buckets_);
}

void LiveCurve::close_bucket() {
  buckets_.push_back({last_, open_highest_});
  in_bucket_ = 0;
  if (buckets_.size() < max_buckets_) {
    return;
  }
  for (std::size_t i = 0; i < buckets_.size() / 2; ++i) {
    const Bucket& a = buckets_[2 * i];
    const Bucket& b = buckets_[2 * i + 1];
    buckets_[i] = {b.end, b.highest.requested_bytes > a.highest.requested_bytes ? b.highest : a.highest};
  }
  buckets_.resize(buckets_.size() / 2);
  stride_ *= 2;
}

std::vector<PlanInstant> LiveCurve::choose_instants(std::size_t exact_count) {
  if (in_bucket_ != 0) {
    buckets_.push_back({last_, open_highest_});
    in_bucket_ = 0;
  }
  std::vector<PlanInstant> chosen;
  chosen.push_back(instant_at(last_, true));
  for (const Bucket& b : buckets_) {
    chosen.push_back(instant_at(b.end, false));
  }
  const auto higher = [](const Bucket& a, const Bucket& b) {
    return a.highest.requested_bytes < b.highest.requested_bytes;
  };
  // Half of the exact instants seek the heights, half are spread evenly. The highest section holds
  // the highest moment of all.
  const std::size_t sections = std::min(std::max<std::size_t>(1, exact_count / 2), buckets_.size());
  for (std::size_t s = 0; s < sections; ++s) {
    const auto first = buckets_.begin() + static_cast<std::ptrdiff_t>(s * buckets_.size() / sections);
    const auto end = buckets_.begin() + static_cast<std::ptrdiff_t>((s + 1) * buckets_.size() / sections);
    chosen.push_back(instant_at(std::max_element(first, end, higher)->highest, true));
    chosen.push_back(instant_at((end - 1)->end, true));
  }
  // Exact before cheap, so that `unique` keeps the exact one of two at the same place.
  std::sort(chosen.begin(), chosen.end(), [](const PlanInstant& a, const PlanInstant& b) {
    return a.op_index != b.op_index ? a.op_index < b.op_index : a.exact > b.exact;
  });
  const auto same_place = [](const PlanInstant& a, const PlanInstant& b) { return a.op_index == b.op_index; };
  chosen.erase(std::unique(chosen.begin(), chosen.end(), same_place), chosen.end());
  return chosen;
}

}  // namespace heaptape::replayer
