// What the replay driver and heaptape-engine say to each other: one shared memfd, PODs only.
//
// The driver fills EngineRequest, starts `heaptape-engine --plan-fd P --result-fd R` (with LD_PRELOAD
// for candidates that replace malloc), waits for its exit, reads EngineResult. The memfd holds
// EngineRequest, EngineResult, then `instant_capacity` InstantResults. The engine trusts the
// driver; the driver checks magic, status and counts of what comes back (the engine may have died).
#pragma once

#include <cstdint>

namespace heaptape::replayer {

inline constexpr std::uint64_t engine_magic = 0x31474E4550544148ULL;  // "HATPENG1"
inline constexpr std::uint32_t engine_protocol_version = 1;

enum class RunMode : std::uint32_t {
  time = 0,   // no instants, nothing but the calls (and touches) between the marks
  space = 1,  // stops at instants; digests, sizes and pages kept; time is not reported
};
enum class TouchMode : std::uint32_t { none = 0, first = 1, pages = 2, all = 3 };
enum class HugePages : std::uint32_t { never = 0, madvise = 1, always = 2 };
enum class CandidateKind : std::uint32_t {
  builtin = 0,  // null, arena, ... by `name`
  process = 1,  // the process's own malloc: glibc, or whatever LD_PRELOAD put there
  library = 2,  // dlopen `library`, symbols `prefix` + malloc, calloc, realloc, free, memalign...
};

struct EngineRequest {
  std::uint64_t magic;
  std::uint32_t version;
  RunMode mode;
  TouchMode touch;
  HugePages huge_pages;
  CandidateKind candidate;
  std::uint32_t instant_capacity;
  std::uint64_t arena_bytes;  // memory to lend to a fixed arena; 0: the engine's default from the plan
  char name[64];              // label of the candidate, for messages; builtin: which
  char library[4096];         // path; library and (for checking that it is there) preload
  char prefix[64];
  char tunables[1024];  // "key=value,key=value", builtins only
};

enum class EngineStatus : std::uint32_t {
  not_finished = 0,  // the engine died before its end: crash of the candidate
  fine = 1,
  refused = 2,  // cannot run this candidate; see `message`
  bad_plan = 3,
};

enum class FootprintMethod : std::uint32_t { none = 0, smaps = 1, pagemap_scan = 2, mincore = 3 };

// Space at one instant. Net: what was there at the start barrier is already subtracted from
// resident, committed and reserved (it stands in EngineResult::fixed).
struct InstantResult {
  std::uint64_t op_index;
  std::uint64_t resident_bytes;  // private anonymous, less LazyFree, plus candidate's shared mappings
  std::uint64_t lazy_free_bytes;
  std::uint64_t committed_bytes;  // readable-writable private anonymous
  std::uint64_t reserved_bytes;   // all private anonymous, PROT_NONE too
  std::uint64_t requested_bytes;  // live, by the engine's own count (equals the plan's)
  std::uint64_t usable_bytes;     // live; 0 where the candidate has no such call
  std::uint64_t live_page_bytes;  // P4: 4096 x pages touched by [p, p + requested)
  std::uint64_t live_huge_bytes;  // P2M
  std::uint64_t live_objects;
  FootprintMethod method;
  std::uint32_t reserved;
};

struct EngineResult {
  std::uint64_t magic;
  EngineStatus status;
  std::uint32_t instant_count;
  char message[512];                 // one line for the user, empty if fine
  char allocator_version[128];       // as the candidate tells it; may be empty
  std::uint64_t elapsed_ns;          // start barrier to last op of the last thread
  std::uint64_t cpu_ns;              // all threads
  std::uint64_t ops_executed;        // waits not counted
  std::uint64_t failed_allocations;  // null results where the plan asked for memory
  std::uint64_t skipped_ops;         // frees of a block whose allocation had failed
  std::uint64_t misaligned;          // results that break the asked (or the platform's) alignment
  std::uint64_t waits;               // waits (deps) or baton hand-overs (total) that had to block
  std::uint64_t waited_ns;
  std::uint64_t handovers;             // total: baton passes
  std::uint64_t order_digest;          // of the executed (thread, op) sequence
  std::uint64_t placement_digest;      // of (op, address - base); space runs only
  std::uint64_t peak_resident_bytes;   // largest over instants and cheap samples, net
  std::uint64_t page_faults;           // minor + major between the marks
  std::uint64_t fixed_resident_bytes;  // at the start barrier: library, threads
  std::uint32_t randomised;            // 1: address randomisation could not be switched off
  std::uint32_t has_usable_size;
  std::uint32_t purged;  // 1: a purge call was found and made after the last instant
  std::uint32_t placement_valid;
  InstantResult after_purge;
};

}  // namespace heaptape::replayer
