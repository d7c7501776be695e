// A candidate that crashes takes the engine with it; what it was doing is left in the result.
#pragma once

#include <cstdint>

#include "replayer/engine/loop.h"
#include "replayer/engine/own_memory.h"
#include "replayer/engine/protocol.h"

namespace heaptape::replayer::engine {

// Signal stacks in the engine's own memory. False: no memory.
[[nodiscard]] bool prepare_crash_stacks(OwnMemory& memory, std::uint32_t thread_count) noexcept;

// From now on a fatal signal writes its number and place into the result's message, then takes its
// usual course.
void report_crashes_in(EngineResult& result) noexcept;

// Gives the calling thread its signal stack and names its lane. `ops`: where the plan's ops begin.
void watch_for_crash(const Lane& lane, const PlanOp* ops) noexcept;

}  // namespace heaptape::replayer::engine
