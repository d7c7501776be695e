// The compiled forms of the replay loop: one per touch mode, kind of run and kind of order.
#pragma once

#include "replayer/engine/ledger.h"
#include "replayer/engine/loop.h"

namespace heaptape::replayer::engine {

// Each runs [op, end) on the calling thread.
template <class Observer>
using RunOps = void (*)(const Replay&, Lane&, Observer&, const PlanOp* op, const PlanOp* end) noexcept;

[[nodiscard]] RunOps<NoObserver> timed_loop(TouchMode touch, Order order) noexcept;
[[nodiscard]] RunOps<Ledger> space_loop(TouchMode touch) noexcept;           // serial, total
[[nodiscard]] RunOps<SlotLedger> space_deps_loop(TouchMode touch) noexcept;  // deps

}  // namespace heaptape::replayer::engine
