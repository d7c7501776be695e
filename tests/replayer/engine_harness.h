// Runs the engine on a plan as the driver does, but plainly, so that the engine's tests depend on
// nothing that decides anything: fill the request, fork, exec, wait, copy the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/cursor.h"
#include "replayer/engine/protocol.h"
#include "replayer/plan/compile.h"
#include "replayer/plan/plan_block.h"

namespace heaptape::replayer {

struct EngineSetup {
  CandidateKind candidate = CandidateKind::builtin;
  std::string name = "null";
  std::string library = {};
  std::string prefix = {};
  std::string preload = {};
  std::string tunables = {};
  std::vector<std::string> environment = {};
  RunMode mode = RunMode::space;
  TouchMode touch = TouchMode::first;
  std::uint64_t arena_bytes = 0;
};

struct EngineRun {
  int wait_status = -1;
  EngineResult result{};
  std::vector<InstantResult> instants;
  [[nodiscard]] bool fine() const { return wait_status == 0 && result.status == EngineStatus::fine; }
};

[[nodiscard]] EngineRun run_engine(int plan_fd, std::uint64_t instants, const EngineSetup& setup);
[[nodiscard]] EngineRun run_engine(const Plan& plan, const EngineSetup& setup);

// A candidate that Debian ships: preloaded, or found by prefix. Empty path: not installed.
[[nodiscard]] std::string find_library(const std::string& soname);

// What `compile_plan` makes of a tape; a failure ends the test program.
[[nodiscard]] Plan must_compile(format::EventCursor& events, Order order, std::uint32_t exact_instants = 20,
                                std::uint32_t cheap_instants = 50);

// Events made while they are read: `steps` random calls of `threads` threads on about `live_target`
// blocks (never more than twice as many). Takes no memory that grows with `steps`.
class GeneratedTape final : public format::EventCursor {
 public:
  struct Shape {
    std::uint64_t seed = 1;
    std::uint64_t steps = 1000;
    std::uint32_t threads = 1;
    std::uint32_t live_target = 100;
    std::uint32_t largest_bytes = 400;
    std::uint32_t calls_per_run = 20;  // on one thread, before another goes on
  };
  explicit GeneratedTape(const Shape& shape) : shape_(shape), state_(shape.seed * 2 + 1) {}

  [[nodiscard]] format::Result<std::span<const format::Event>> next() override;
  [[nodiscard]] const format::MergeReport& report() const noexcept override { return report_; }
  [[nodiscard]] std::uint32_t slots() const noexcept override { return slots_; }

 private:
  struct Block {
    std::uint64_t object;
    std::uint64_t size_bytes;
    format::SlotIndex slot;
  };
  [[nodiscard]] std::uint64_t below(std::uint64_t limit);
  void acquire(format::Event& event);
  void release(format::Event& event);

  Shape shape_;
  std::uint64_t state_;
  std::uint64_t made_ = 0;
  std::uint64_t objects_ = 0;
  std::uint32_t slots_ = 0;
  std::uint32_t thread_ = 0;
  std::vector<Block> live_;
  std::vector<format::SlotIndex> free_slots_;
  std::vector<format::Event> batch_;
  format::MergeReport report_;
};

}  // namespace heaptape::replayer
