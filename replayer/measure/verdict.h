// Who is faster than whom, in words that do not claim more than the runs show.
#pragma once

#include <vector>

#include "replayer/measure/result.h"

namespace heaptape::replayer {

inline constexpr std::uint32_t fewest_runs_for_a_verdict = 3;

// `one` against `baseline` by net time, paired by round. Cannot be told where either failed, did less
// than the tape asks for, is not slower than the harness itself, or where there are too few runs.
[[nodiscard]] Verdict compare_speed(const CandidateResult& one, const CandidateResult& baseline);

// Each of the others against result.baseline; none where the baseline failed.
[[nodiscard]] std::vector<Verdict> judge(const ReplayResult& result);

}  // namespace heaptape::replayer
