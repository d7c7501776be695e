// `null`: gives every request the same address and takes nothing back. What it costs is the harness.
//
// Touched memory is real: each thread has a small shared scratch chunk, shown again and again over a
// range as long as the largest request. So `null` pays for the same stores as every candidate, from
// warm memory, and its resident size is zero pages whatever is touched.
#include "replayer/engine/candidate.h"

namespace heaptape::replayer::engine {

namespace {

constexpr std::size_t usual_chunk_bytes = std::size_t{256} * 1024;  // fits the second-level cache
constexpr std::size_t most_mappings = std::size_t{16} * 1024;       // of the system's usual limit of 65,530

constinit char* scratch = nullptr;
constinit std::size_t scratch_stride = 0;
constinit thread_local char* own_scratch = nullptr;

void* null_malloc(std::size_t) noexcept { return own_scratch; }
void* null_calloc(std::size_t, std::size_t) noexcept { return own_scratch; }
void* null_aligned(std::size_t, std::size_t) noexcept { return own_scratch; }
void* null_realloc(void*, std::size_t) noexcept { return own_scratch; }
void null_free(void*) noexcept {}

}  // namespace

void adopt_null_scratch(std::uint32_t thread) noexcept { own_scratch = scratch + thread * scratch_stride; }

bool load_null(const CandidateSetup& setup, Candidate& candidate) noexcept {
  const std::size_t threads = setup.plan.thread_count;
  std::size_t alignment = page_bytes;
  if (setup.demand.largest_alignment_bytes > alignment) alignment = setup.demand.largest_alignment_bytes;
  const bool whole_blocks = setup.request.touch == TouchMode::pages || setup.request.touch == TouchMode::all;
  const std::size_t needed = round_up(whole_blocks ? setup.plan.largest_request_bytes + 1 : 1, page_bytes);
  std::size_t chunk = page_bytes;
  while (chunk < needed && (chunk < usual_chunk_bytes || needed / chunk * threads > most_mappings))
    chunk *= 2;
  // Both are powers of two: the larger one divides the stride, and so do both.
  scratch_stride = round_up(needed, chunk > alignment ? chunk : alignment);
  scratch = setup.memory.make_windows(threads, scratch_stride, chunk, alignment);
  if (scratch == nullptr) {
    setup.message << "null: no memory for scratch of " << setup.plan.largest_request_bytes << " bytes for "
                  << std::uint64_t{threads} << " threads";
    return false;
  }
  candidate = {.malloc = null_malloc,
               .calloc = null_calloc,
               .aligned = null_aligned,
               .realloc = null_realloc,
               .free = null_free};
  return true;
}

}  // namespace heaptape::replayer::engine
