// The plan compiler: a tape's merged events in, one flat replay plan out.
//
// What becomes of each event:
//   malloc, operator new                 malloc
//   calloc                               calloc
//   every aligned form                   aligned; alignment rounded up to a power of two, at least
//                                        that of a pointer; valloc and pvalloc: a page
//   realloc(p, n)                        realloc
//   realloc(NULL, n)                     realloc with op_realloc_null: the allocator's realloc(NULL, n)
//   realloc of a block never seen        malloc (its old block is counted in skipped_unknown)
//   realloc(p, 0) that returned null     free (counted in freeing_reallocs)
//   realloc(p, 0) that returned a block  free, then malloc(0): many an allocator would return null
//   release                              free; `implied` ones too, for the object must die
//   release of a block never seen        skipped, counted in skipped_unknown
//   failed or unfinished call            skipped, counted in skipped_failed
//   free(NULL), malloc_trim              skipped
// Threads are renumbered densely, in the order of their first operation.
//
// Trusts the cursor for memory bounds only as far as it checks them: events whose slots contradict
// each other are an error (bad_tape), never a bad plan. Memory: the plan and what is live.
#pragma once

#include <cstdint>

#include "format/base/error.h"
#include "format/cursor.h"
#include "replayer/plan/plan.h"
#include "replayer/plan/plan_block.h"

namespace heaptape::replayer {

struct PlanOptions {
  Order order = Order::serial;
  // serial and total: about how many instants are read exactly, and at most how many cheaply.
  // A plan in `deps` has none: no moment of it is the same twice.
  std::uint32_t exact_instants = 20;
  std::uint32_t cheap_instants = 1000;
};

inline constexpr std::uint32_t max_plan_threads = 1U << 20;

[[nodiscard]] format::Result<Plan> compile_plan(format::EventCursor& events, const PlanOptions& options);

}  // namespace heaptape::replayer
