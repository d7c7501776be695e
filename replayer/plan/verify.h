// The planner's proof: a plan that passes can be run in every interleaving its order allows.
//
// Checked: counts and ranges of all parts; every operation is well formed; slots are empty before
// they are filled and live before they are freed or resized, so that no two live objects share one;
// `serial` and `total`: the runs are exactly the threads' operations, instants stand between runs
// and tell the truth about live bytes and objects; `deps`: every operation a wait names is marked
// for publishing; the waits can all be satisfied (one schedule that runs every operation is found;
// since a position once reached stays reached, then no schedule can get stuck); and each use of a
// slot by another thread than the last one waited for that last use, so that the order of uses of
// every slot is the same in all schedules.
// Cost: about 10 ns per operation; memory 24 bytes per slot.
#pragma once

#include "format/base/error.h"
#include "replayer/plan/plan_block.h"

namespace heaptape::replayer {

[[nodiscard]] format::Result<void> verify_plan(const Plan& plan);

}  // namespace heaptape::replayer
