// From an engine's readings to the space half of a result. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replayer/measure/engine_process.h"
#include "replayer/measure/result.h"
#include "replayer/plan/plan_block.h"

namespace heaptape::replayer {

// The engine counts live bytes itself; they must be the plan's, unless allocations failed. Empty: they are.
[[nodiscard]] std::string space_contradiction(const Plan& plan, const EngineOutcome& outcome);

// The instant of the largest resident size, if it was not read exactly.
[[nodiscard]] std::optional<std::size_t> cheap_peak(const EngineOutcome& outcome);

[[nodiscard]] SpaceResult space_of(const Plan& plan, const EngineOutcome& outcome);

[[nodiscard]] std::string digest_text(std::uint64_t digest);

}  // namespace heaptape::replayer
