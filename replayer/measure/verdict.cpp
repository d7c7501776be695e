#include "replayer/measure/verdict.h"

#include <algorithm>

namespace heaptape::replayer {
namespace {

// Why this one's time cannot be compared; empty: it can.
std::string objection(const CandidateResult& c) {
  if (!c.failure.empty()) {
    return fmt::format("{}: {}", c.allocator, c.failure);
  }
  if (c.failed_allocations != 0) {
    return fmt::format("{}: {} allocations failed, so it did less work than the tape asks for", c.allocator,
                       c.failed_allocations);
  }
  if (c.time.net_ns_per_event.low <= 0.0) {
    return fmt::format("{}: too close to the harness itself to be compared", c.allocator);
  }
  return {};
}

}  // namespace

Verdict compare_speed(const CandidateResult& one, const CandidateResult& baseline) {
  Verdict v;
  v.allocator = one.allocator;
  v.against = baseline.allocator;
  for (const CandidateResult* c : {&one, &baseline}) {
    if (v.text = objection(*c); !v.text.empty()) {
      return v;
    }
  }
  // Times of the baseline over those of this one: above 1 is faster.
  const Estimate ratio = estimate_ratio(baseline.time.net_rounds, one.time.net_rounds);
  v.speed = ratio;
  if (std::min(one.time.net_rounds.size(), baseline.time.net_rounds.size()) < fewest_runs_for_a_verdict) {
    v.text = fmt::format("{} took {:.2f}x the time of {}; too few runs to say more", one.allocator,
                         1 / ratio.median, baseline.allocator);
    return v;
  }
  v.significant = ratio.low > 1.0 || ratio.high < 1.0;
  if (!v.significant) {
    v.text = fmt::format("{}: no significant difference from {} ({:.2f}x the speed, {:.2f} to {:.2f})",
                         one.allocator, baseline.allocator, ratio.median, ratio.low, ratio.high);
  } else if (ratio.median > 1.0) {
    v.text = fmt::format("{} is {:.2f}x faster than {} ({:.2f} to {:.2f})", one.allocator, ratio.median,
                         baseline.allocator, ratio.low, ratio.high);
  } else {
    v.text = fmt::format("{} is {:.2f}x slower than {} ({:.2f} to {:.2f})", one.allocator, 1 / ratio.median,
                         baseline.allocator, 1 / ratio.high, 1 / ratio.low);
  }
  return v;
}

std::vector<Verdict> judge(const ReplayResult& result) {
  std::vector<Verdict> verdicts;
  const auto baseline =
      std::find_if(result.results.begin(), result.results.end(),
                   [&](const CandidateResult& c) { return c.allocator == result.baseline; });
  if (baseline == result.results.end()) {
    return verdicts;
  }
  for (const CandidateResult& c : result.results) {
    if (&c != &*baseline) {
      verdicts.push_back(compare_speed(c, *baseline));
    }
  }
  return verdicts;
}

}  // namespace heaptape::replayer
