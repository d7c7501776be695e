// Is a plan what plan.h says? One pass over all of it before the start, so that the replay loop need
// not check anything.
#pragma once

#include <cstddef>

#include "replayer/engine/candidate.h"
#include "replayer/engine/text.h"
#include "replayer/plan/plan.h"

namespace heaptape::replayer::engine {

// The parts of a plan block, found by its header's offsets.
struct PlanView {
  const PlanHeader* header = nullptr;
  const PlanThread* threads = nullptr;
  const PlanOp* ops = nullptr;
  const PlanRun* runs = nullptr;
  const PlanInstant* instants = nullptr;
};

// False: the message says what is wrong. `size_bytes` is what the file holds.
[[nodiscard]] bool check_plan(const void* block, std::size_t size_bytes, PlanView& plan, Demand& demand,
                              Text& message) noexcept;

}  // namespace heaptape::replayer::engine
