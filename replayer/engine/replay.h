// One replay from the start barrier to the last op: threads, order, instants, what was counted.
//
// Thread 0 of the plan is the process's main thread, because allocators treat it differently. The
// others are made before the start barrier on stacks of the engine's own memory, and live until the
// process ends, so that no cache is flushed by a thread's exit before it has been measured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "replayer/engine/footprint.h"
#include "replayer/engine/ledger.h"
#include "replayer/engine/plan_check.h"
#include "replayer/engine/protocol.h"
#include "replayer/engine/run.h"

namespace heaptape::replayer::engine {

class ReplayRun {
 public:
  ReplayRun(const EngineRequest& request, const PlanView& plan, const Candidate& candidate, OwnMemory& memory,
            EngineResult& result, InstantResult* instants) noexcept;

  // Slots, ledgers and threads. False: the system refused something; the message says what.
  [[nodiscard]] bool prepare(Text& message) noexcept;

  // Runs the plan and fills the result. Call once.
  void execute() noexcept;

 private:
  struct Worker {
    ReplayRun* run;
    Lane* lane;
  };
  [[nodiscard]] bool make_threads(Text& message) noexcept;
  [[nodiscard]] bool make_thread(std::size_t index, void* (*run)(void*), void* argument,
                                 Text& message) noexcept;
  static void* work(void* worker) noexcept;
  static void* watch(void* run) noexcept;
  void run_lane(Lane& lane) noexcept;
  void run_with_baton(Lane& lane) noexcept;
  void run_turn(Lane& lane) noexcept;
  void sum_up(std::uint64_t begin_ns) noexcept;

  // Space runs.
  void read_fixed() noexcept;
  void take_due_instants() noexcept;
  [[nodiscard]] InstantResult take(bool exact) noexcept;
  void watch_peak() noexcept;
  void count_live_blocks() noexcept;
  void measure_purged() noexcept;
  [[nodiscard]] bool space() const noexcept { return request_.mode == RunMode::space; }
  // In `deps` no moment is the same twice: a thread of its own looks again and again.
  [[nodiscard]] bool watched() const noexcept { return space() && plan_.header->order == Order::deps; }

  const EngineRequest& request_;
  const PlanView plan_;
  const Candidate& candidate_;
  OwnMemory& memory_;
  EngineResult& result_;
  InstantResult* const instants_;

  Replay replay_;
  Worker* workers_ = nullptr;
  char* stacks_ = nullptr;
  FootprintReader footprint_;
  Footprint fixed_exact_;
  Footprint fixed_cheap_;
  Rendezvous ready_;
  Latch go_;
  Rendezvous done_;
  Rendezvous purged_;
  std::atomic<std::uint32_t> stop_watching_{0};  // set by the main thread; partner: watch_peak()
  Rendezvous watch_ended_;

  // Passed on with the baton, or touched only after all have finished: plain.
  SlotSizes* sizes_ = nullptr;
  Ledger ledger_;
  SlotLedger slot_ledger_;
  OrderDigest order_digest_;
  std::uint64_t run_ = 0;
  std::uint64_t ops_done_ = 0;
  std::uint64_t next_instant_ = 0;
  bool finished_ = false;
};

}  // namespace heaptape::replayer::engine
