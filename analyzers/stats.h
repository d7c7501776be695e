// `stats`: the analyses that together describe a tape, and what they found unusual, in words.
#pragma once

#include <string>
#include <vector>

#include "analyzers/analysis.h"
#include "analyzers/lifetimes.h"
#include "analyzers/live_curve.h"
#include "analyzers/sizes.h"
#include "analyzers/threads.h"
#include "analyzers/totals.h"
#include "format/reader.h"

namespace heaptape::analyzers {

// What every renderer of `stats` gets: copies no table, lives no longer than its analyses.
struct Stats {
  const Totals& totals;
  const SizeProfile& sizes;
  const Lifetimes& lifetimes;
  const LiveCurve& curve;
  const std::vector<ThreadRow>& threads;
  const format::MergeReport& merged;
};

class StatsAnalysis final : public Analysis {
 public:
  void consume(std::span<const format::Event> events) override;
  void finish(const format::MergeReport& merged) override;
  [[nodiscard]] Stats result() const noexcept;

 private:
  TotalsAnalysis totals_;
  SizesAnalysis sizes_;
  LifetimesAnalysis lifetimes_;
  LiveCurveAnalysis curve_;
  ThreadsAnalysis threads_;
  format::MergeReport merged_;
};

// What a reader of the numbers should know before trusting or using them; one sentence each, the
// gravest first. Empty: nothing unusual.
[[nodiscard]] std::vector<std::string> anomalies(const Stats& stats, const format::TapeInfo& info);

}  // namespace heaptape::analyzers
