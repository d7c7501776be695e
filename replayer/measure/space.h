// From an engine's readings to the space half of a result. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replayer/measure/engine_process.h"
#include "replayer/measure/result.h"
#include "replayer/plan/plan_block.h"

namespace heaptape::replayer {

// The engine counts live bytes itself; they must be the plan's, unless allocations failed. Empty: they are.
[[nodiscard]] std::string space_contradiction(const Plan& plan, const EngineOutcome& outcome);

// Instants that must be read exactly in another run for the result to be right: the one where a cheap
// reading found the peak; or, for an allocator whose pages cheap readings judge wrongly (MADV_FREE),
// some 200 all along the run, for then only exact ones are used. Empty: this run will do.
[[nodiscard]] std::vector<std::size_t> exact_readings_needed(const EngineOutcome& outcome);

[[nodiscard]] SpaceResult space_of(const Plan& plan, const EngineOutcome& outcome);

[[nodiscard]] std::string digest_text(std::uint64_t digest);

}  // namespace heaptape::replayer
