#include "replayer/engine/run.h"

namespace heaptape::replayer::engine {

namespace {

template <bool linked, class Observer>
RunOps<Observer> by_touch(TouchMode touch) noexcept {
  switch (touch) {
    case TouchMode::none:
      return run_ops<TouchMode::none, linked, Observer>;
    case TouchMode::first:
      return run_ops<TouchMode::first, linked, Observer>;
    case TouchMode::pages:
      return run_ops<TouchMode::pages, linked, Observer>;
    case TouchMode::all:
      break;
  }
  return run_ops<TouchMode::all, linked, Observer>;
}

}  // namespace

RunOps<NoObserver> timed_loop(TouchMode touch, Order order) noexcept {
  return order == Order::deps ? by_touch<true, NoObserver>(touch) : by_touch<false, NoObserver>(touch);
}

RunOps<Ledger> space_loop(TouchMode touch) noexcept { return by_touch<false, Ledger>(touch); }

RunOps<SlotLedger> space_deps_loop(TouchMode touch) noexcept { return by_touch<true, SlotLedger>(touch); }

}  // namespace heaptape::replayer::engine
