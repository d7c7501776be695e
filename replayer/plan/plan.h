// The replay plan: a flat, position-independent block of memory that the engine runs as it is.
//
// Written by the plan compiler into a memfd, mapped read-only by the engine. All integers in host
// order (a plan never outlives the replay). Offsets are bytes from the start of the block, 64-byte
// aligned. Slots instead of addresses: slot s is where the engine keeps the pointer of one live
// object; the slot table is as long as the peak number of live objects, for every order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heaptape::replayer {

enum class Order : std::uint32_t {
  serial = 0,  // one thread, the merged order
  total = 1,   // one thread per recorded thread, one baton, the merged order
  deps = 2,    // one thread per recorded thread; only object and slot dependencies are waited for
};

enum class OpCode : std::uint8_t {
  malloc = 1,   // operator new and the like too
  calloc = 2,   // size = product
  aligned = 3,  // every aligned form; alignment = 1 << alignment_log2
  realloc = 4,  // slot keeps the object: old pointer in, new pointer out
  free = 5,     // slot becomes empty
  wait = 6,     // deps only: until thread `slot` has published a position >= `size`
};

// PlanOp::flags
inline constexpr std::uint8_t op_publish = 1;       // deps: another thread waits for this op: publish
                                                    // "this op is done" after it
inline constexpr std::uint8_t op_realloc_null = 2;  // realloc(NULL, n): the slot is empty before

struct PlanOp {
  OpCode code;
  std::uint8_t alignment_log2;
  std::uint8_t flags;
  std::uint8_t reserved;
  std::uint32_t slot;        // wait: the thread waited for
  std::uint64_t size_bytes;  // wait: the position (number of that thread's ops, waits included, done)
};
static_assert(sizeof(PlanOp) == 16);

struct PlanThread {
  std::uint64_t first_op;  // index into the op array: each thread's ops are contiguous, in its order
  std::uint64_t op_count;
};

// serial and total: the order as runs; thread t does its next `op_count` ops, then the next run.
struct PlanRun {
  std::uint32_t thread;
  std::uint32_t op_count;
};

// Where a space run stops all threads and measures: before run `run` begins (run == run_count: at
// the end). Runs are split so that every instant falls between two runs.
struct PlanInstant {
  std::uint64_t run;
  std::uint64_t op_index;         // number of ops done in merged order
  std::uint64_t event_index;      // of the tape
  std::int64_t time_ns;           // of the tape
  std::uint64_t requested_bytes;  // live at that instant, by the plan
  std::uint64_t live_objects;
  std::uint32_t exact;  // 1: read exactly (smaps); 0: the cheap method will do
  std::uint32_t reserved;
};

inline constexpr std::uint64_t plan_magic = 0x314E414C50544148ULL;  // "HATPLAN1"
inline constexpr std::uint32_t plan_version = 1;

struct PlanHeader {
  std::uint64_t magic;
  std::uint32_t version;
  Order order;
  std::uint64_t total_bytes;  // of the whole block
  std::uint32_t thread_count;
  std::uint32_t slot_count;
  std::uint64_t op_count;
  std::uint64_t wait_count;  // of those, OpCode::wait
  std::uint64_t run_count;   // 0 in deps
  std::uint64_t instant_count;
  std::uint64_t threads_offset;
  std::uint64_t ops_offset;
  std::uint64_t runs_offset;
  std::uint64_t instants_offset;
  std::uint64_t peak_requested_bytes;
  std::uint64_t peak_live_objects;
  std::uint64_t largest_request_bytes;
  std::uint64_t total_requested_bytes;
  std::uint64_t skipped_failed;    // recorded failed calls, not replayed
  std::uint64_t skipped_unknown;   // releases of blocks born before the recording
  std::uint64_t freeing_reallocs;  // realloc(p, 0) replayed as free
};

}  // namespace heaptape::replayer
