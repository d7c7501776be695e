// Starts heaptape-engine for one run and brings back what it measured.
//
// Guarantees: a candidate that crashes, hangs, refuses or writes nonsense is an outcome with a
// `failure`, never an error of ours; an Error means that the system would not let us start engines at
// all. The engine's environment is empty but for LD_PRELOAD, LD_LIBRARY_PATH (ours, if set) and the
// candidate's settings, so that a run does not depend on who started it. What it prints is kept (the
// first 64 KiB) to explain a crash. The child is always reaped; after `timeout` it is killed.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "format/base/error.h"
#include "replayer/engine/protocol.h"
#include "replayer/measure/candidate.h"
#include "replayer/plan/plan_block.h"

namespace heaptape::replayer {

struct EngineSettings {
  std::filesystem::path engine;
  TouchMode touch = TouchMode::pages;
  HugePages huge_pages = HugePages::never;
  std::uint64_t arena_bytes = 0;  // for arenas that name no size
  std::chrono::nanoseconds timeout = std::chrono::minutes(10);
};

struct EngineOutcome {
  EngineResult result{};
  std::vector<InstantResult> instants;
  std::string failure;  // empty: the run is good
};

// HEAPTAPE_ENGINE, else beside this program, else where an installed tree has it. Errors: system.
[[nodiscard]] format::Result<std::filesystem::path> find_engine();

[[nodiscard]] format::Result<EngineOutcome> run_engine(const Plan& plan, const Candidate& candidate,
                                                       RunMode mode, const EngineSettings& settings);

}  // namespace heaptape::replayer
