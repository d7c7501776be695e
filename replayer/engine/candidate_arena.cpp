// `arena`: our own fixed-block heap, in memory that the engine lends it. That memory is private
// anonymous and not touched before, so what the arena touches is charged to the arena.
#include <sys/mman.h>

#include <cstring>

#include "replayer/engine/candidate.h"
#include "replayer/heaps/arena.h"

namespace heaptape::replayer::engine {

namespace {

using heaps::Arena;
using heaps::Locking;

constexpr std::size_t least_bytes = std::size_t{64} << 20U;

constinit Arena* arena = nullptr;  // malloc's signatures carry no context

void* arena_malloc(std::size_t size) noexcept { return arena->allocate(size); }
void* arena_calloc(std::size_t count, std::size_t size) noexcept {
  return arena->allocate_zeroed(count, size);
}
void* arena_aligned(std::size_t alignment, std::size_t size) noexcept {
  return arena->allocate_aligned(alignment, size);
}
void* arena_realloc(void* block, std::size_t size) noexcept { return arena->reallocate(block, size); }
void arena_free(void* block) noexcept { arena->release(block); }
std::size_t arena_usable(void* block) noexcept { return arena->usable_size(block); }

// Twice the peak, for fragmentation; 64 bytes a block, for rounding and overhead; room for the largest
// alignment.
std::size_t usual_bytes(const CandidateSetup& setup) noexcept {
  const std::uint64_t blocks = setup.plan.peak_live_objects * 64;
  const std::uint64_t wanted = 2 * setup.plan.peak_requested_bytes + blocks +
                               2 * setup.plan.largest_request_bytes +
                               2 * setup.demand.largest_alignment_bytes;
  return round_up(wanted < least_bytes ? least_bytes : wanted, std::size_t{1} << 20U);
}

// "threads=shared" or "threads=none"; nothing: shared where there is more than one thread.
bool read_tunables(const CandidateSetup& setup, Locking& locking) noexcept {
  const char* const text = setup.request.tunables;
  locking = setup.plan.thread_count > 1 ? Locking::shared : Locking::none;
  if (text[0] == '\0') return true;
  if (std::strcmp(text, "threads=shared") == 0) {
    locking = Locking::shared;
    return true;
  }
  if (std::strcmp(text, "threads=none") == 0) {
    if (setup.plan.order == Order::deps && setup.plan.thread_count > 1) {
      setup.message << "arena: threads=none is for one thread at a time; take --order=serial or total";
      return false;
    }
    locking = Locking::none;
    return true;
  }
  setup.message << "arena: unknown setting '" << text << "'; there are threads=shared and threads=none";
  return false;
}

}  // namespace

bool load_arena(const CandidateSetup& setup, Candidate& candidate) noexcept {
  Locking locking = Locking::none;
  if (!read_tunables(setup, locking)) return false;
  const std::size_t bytes = setup.request.arena_bytes != 0 ? setup.request.arena_bytes : usual_bytes(setup);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  arena = memory == MAP_FAILED ? nullptr : Arena::create(memory, bytes, locking);
  if (arena == nullptr) {
    setup.message << "arena: cannot make one of " << std::uint64_t{bytes} << " bytes";
    return false;
  }
  candidate = {.malloc = arena_malloc,
               .calloc = arena_calloc,
               .aligned = arena_aligned,
               .realloc = arena_realloc,
               .free = arena_free,
               .usable = arena_usable};
  return true;
}

}  // namespace heaptape::replayer::engine
