// The allocator under test, as a table of function pointers.
//
// Filled once, before the start barrier, by load_candidate(); read by every thread afterwards. The
// functions are trusted to have malloc's signatures and nothing else: what they return is checked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replayer/engine/own_memory.h"
#include "replayer/engine/protocol.h"
#include "replayer/engine/text.h"
#include "replayer/plan/plan.h"

namespace heaptape::replayer::engine {

struct Candidate {
  void* (*malloc)(std::size_t size_bytes) = nullptr;
  void* (*calloc)(std::size_t count, std::size_t size_bytes) = nullptr;
  void* (*aligned)(std::size_t alignment_bytes, std::size_t size_bytes) = nullptr;
  void* (*realloc)(void* block, std::size_t size_bytes) = nullptr;
  void (*free)(void* block) = nullptr;
  std::size_t (*usable)(void* block) = nullptr;  // may be missing
  void (*mark)(int running) = nullptr;  // heaptape_mark(1) at the start, (0) at the end; may be missing
};

// What the tape will ask for, known from one pass over the plan.
struct Demand {
  std::size_t largest_alignment_bytes = 1;
  bool aligned = false;  // any aligned allocation at all
};

struct CandidateSetup {
  const EngineRequest& request;
  const PlanHeader& plan;
  Demand demand;
  OwnMemory& memory;
  Text& message;  // says why, when a load fails
  Text& version;
};

// False: refused; the message says why and what to do.
[[nodiscard]] bool load_candidate(const CandidateSetup& setup, Candidate& candidate) noexcept;

// The loaders behind it.
[[nodiscard]] bool load_null(const CandidateSetup& setup, Candidate& candidate) noexcept;
[[nodiscard]] bool load_arena(const CandidateSetup& setup, Candidate& candidate) noexcept;
[[nodiscard]] bool load_process(const CandidateSetup& setup, Candidate& candidate) noexcept;
[[nodiscard]] bool load_library(const CandidateSetup& setup, Candidate& candidate) noexcept;

// For `null`: each thread writes to scratch memory of its own. Called by every thread before the
// start barrier; does nothing when another candidate is loaded.
void adopt_null_scratch(std::uint32_t thread) noexcept;

}  // namespace heaptape::replayer::engine
