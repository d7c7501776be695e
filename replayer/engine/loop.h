// The replay loop: ops of a plan against a candidate, on one thread.
//
// Guarantees: calls the candidate exactly as the plan says and nothing else; allocates nothing.
// Trusts the plan (checked once before the start). Threads: one Lane each; in `deps` several run at
// once and a slot passes between them only behind an edge of the plan. Which functions this may
// call is fixed by a test over the object's undefined symbols.
//
// Cost per op beyond the candidate's own call: one op and one slot loaded, two predicted indirect
// jumps, two tests of the result: about 7 cycles.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "replayer/engine/candidate.h"
#include "replayer/engine/digest.h"
#include "replayer/engine/sync.h"
#include "replayer/plan/plan.h"

namespace heaptape::replayer::engine {

// What one thread of the replay knows. Written by its thread; read by others at the end.
struct alignas(cache_line_bytes) Lane {
  std::uint32_t thread = 0;
  const PlanOp* begin = nullptr;
  const PlanOp* next = nullptr;
  const PlanOp* end = nullptr;
  const PlanOp* current = nullptr;  // space runs: for the message of a crash
  std::uint64_t failed_allocations = 0;
  std::uint64_t misaligned = 0;
  std::uint64_t skipped_ops = 0;       // frees of a slot that is empty because its allocation failed
  std::uint64_t digest = digest_seed;  // deps: of the positions seen
  std::uint64_t end_ns = 0;
  Waiting waiting;
  Gate gate;          // total
  Position position;  // deps
};

struct Replay {
  const Candidate* candidate = nullptr;
  void** slots = nullptr;
  Lane* lanes = nullptr;
};

// Stores to the new block as the touch mode says.
template <TouchMode touch>
[[gnu::always_inline]] inline void touch_block(void* block, std::uint64_t size_bytes) noexcept {
  if constexpr (touch == TouchMode::none) return;
  if (size_bytes == 0) return;
  auto* const bytes = static_cast<volatile char*>(block);
  if constexpr (touch == TouchMode::all) {
    std::memset(block, 0x5A, size_bytes);
    // The block escapes, so that the stores are not dead.
    asm volatile("" : : "r"(block) : "memory");
  } else {
    bytes[0] = 1;
    if constexpr (touch == TouchMode::pages) {
      const std::uint64_t to_next_page = page_bytes - reinterpret_cast<std::uintptr_t>(block) % page_bytes;
      for (std::uint64_t at = to_next_page; at < size_bytes; at += page_bytes) bytes[at] = 1;
    }
  }
}

// The result may be wrong: null, or off the 16 bytes that nearly all blocks keep. Cold.
// True: the block may be used.
[[gnu::cold, gnu::noinline]] inline bool judge(Lane& lane, const PlanOp& op, const void* block) noexcept {
  if (block == nullptr) {
    if (op.size_bytes != 0) ++lane.failed_allocations;  // a null for no bytes is allowed
    return false;
  }
  if (op.size_bytes == 0) return true;  // no object lies there
  // The platform's rule: enough for any object of that size.
  std::uint64_t needed = op.size_bytes >= 16 ? 16 : std::bit_floor(op.size_bytes | 1);
  if (op.code == OpCode::aligned) needed = std::uint64_t{1} << op.alignment_log2;
  if (reinterpret_cast<std::uintptr_t>(block) % needed != 0) ++lane.misaligned;
  return true;
}

template <TouchMode touch, class Observer>
[[gnu::always_inline]] inline void accept(Lane& lane, Observer& observer, const PlanOp& op, void*& slot,
                                          void* block, std::uint64_t alignment_bytes) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(block);
  slot = block;
  if (block == nullptr || (bits & (alignment_bytes - 1)) != 0) [[unlikely]] {
    if (!judge(lane, op, block)) {
      observer.failed(op);
      return;
    }
  }
  touch_block<touch>(block, op.size_bytes);
  observer.born(op, block);
}

template <TouchMode touch, class Observer>
[[gnu::always_inline]] inline void reallocate(const Candidate& candidate, Lane& lane, Observer& observer,
                                              const PlanOp& op, void*& slot) noexcept {
  void* const old = slot;
  // Empty where the candidate answered null, be it to a request for no bytes: then as in C, a new block.
  observer.leaving(op, old);
  void* const block = candidate.realloc(old, op.size_bytes);
  if (block == nullptr && old != nullptr) [[unlikely]] {
    if (op.size_bytes == 0) {  // this candidate frees then
      slot = nullptr;
    } else {
      ++lane.failed_allocations;
      observer.stayed(op, old);
    }
    return;
  }
  accept<touch>(lane, observer, op, slot, block, 16);
}

// OpCode::wait. What was seen goes into the digest: so much of the order as the threads can know.
[[gnu::always_inline]] inline void wait_for_other(const Replay& replay, Lane& lane,
                                                  const PlanOp& op) noexcept {
  Position& position = replay.lanes[op.slot].position;
  std::uint64_t seen = position.reached(op.size_bytes);
  if (seen == 0) [[unlikely]]
    seen = position.wait(op.size_bytes, lane.waiting);
  lane.digest = mix(lane.digest, seen);
}

// Runs [op, end). `linked`: deps, waits and publications are ops of this thread's stream.
template <TouchMode touch, bool linked, class Observer>
void run_ops(const Replay& replay, Lane& lane, Observer& observer, const PlanOp* op,
             const PlanOp* const end) noexcept {
  constexpr int prefetch_distance = 8;  // the plan is followed by a readable page
  const Candidate& candidate = *replay.candidate;
  void** const slots = replay.slots;
  for (; op != end; ++op) {
    __builtin_prefetch(&slots[op[prefetch_distance].slot], 1);
    void*& slot = slots[op->slot];
    observer.begins(lane, op);
    // The two common calls first: a conditional jump is predicted sooner than an indirect one.
    if (op->code == OpCode::malloc) {
      accept<touch>(lane, observer, *op, slot, candidate.malloc(op->size_bytes), 16);
    } else if (op->code == OpCode::free) {
      if (void* const block = slot; block != nullptr) [[likely]] {
        slot = nullptr;
        observer.leaving(*op, block);
        candidate.free(block);
      } else {
        ++lane.skipped_ops;
      }
    } else if (op->code == OpCode::realloc) {
      reallocate<touch>(candidate, lane, observer, *op, slot);
    } else if (op->code == OpCode::calloc) {
      accept<touch>(lane, observer, *op, slot, candidate.calloc(1, op->size_bytes), 16);
    } else if (op->code == OpCode::aligned) {
      const std::size_t alignment_bytes = std::size_t{1} << op->alignment_log2;
      accept<touch>(lane, observer, *op, slot, candidate.aligned(alignment_bytes, op->size_bytes),
                    alignment_bytes);
    } else if constexpr (linked) {
      wait_for_other(replay, lane, *op);
    }
    if constexpr (linked) {
      if ((op->flags & op_publish) != 0)
        lane.position.publish(static_cast<std::uint64_t>(op - lane.begin) + 1);
    }
  }
}

// For time runs: sees nothing, costs nothing.
struct NoObserver {
  void begins(Lane&, const PlanOp*) noexcept {}
  void born(const PlanOp&, void*) noexcept {}
  void leaving(const PlanOp&, void*) noexcept {}  // before a free or a realloc
  void stayed(const PlanOp&, void*) noexcept {}   // a realloc failed, the old block is kept
  void failed(const PlanOp&) noexcept {}
};

}  // namespace heaptape::replayer::engine
