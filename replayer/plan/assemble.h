// Puts the pieces of a plan into one sealed memfd.
//
// Guarantees: pieces are freed as they are copied; memory that the system refuses is an error, not a
// SIGBUS (everything is written by pwrite before it is mapped); the block can neither shrink nor grow
// once an engine maps it.
#pragma once

#include <cstdint>
#include <vector>

#include "format/base/error.h"
#include "replayer/plan/chunk_list.h"
#include "replayer/plan/plan.h"
#include "replayer/plan/plan_block.h"

namespace heaptape::replayer {

struct ThreadPieces {
  ChunkList<PlanOp> ops;
  std::vector<std::uint64_t> published;  // operations that others wait for; in any order, repeatedly
};

struct PlanPieces {
  PlanHeader header{};  // counts of what is below and all offsets are filled in here
  std::vector<ThreadPieces> threads;
  ChunkList<PlanRun> runs;            // not yet split at the instants
  std::vector<PlanInstant> instants;  // `run` not yet set
};

class PlanAssembler {
 public:
  [[nodiscard]] static format::Result<Plan> assemble(PlanPieces pieces);
};

}  // namespace heaptape::replayer
