// The candidate's own way to give memory back, looked up by name.
//
// malloc_trim(0) (glibc), mi_collect(true) (mimalloc), mallctl arena.<all>.purge (jemalloc),
// MallocExtension_ReleaseFreeMemory (tcmalloc), scalable_allocation_command (TBB), mallopt(M_PURGE)
// (scudo), PREFIX + malloc_trim (others). Found before the start barrier, called after the last op.
#pragma once

#include <cstdint>

namespace heaptape::replayer::engine {

// `foreign`: the library is not the C library, whose malloc_trim does nothing for others.
void find_purge_call(void* library, const char* prefix, bool foreign) noexcept;

// Makes the call, if there is one. One that acts on the calling thread's memory only is made by
// every thread, the others by thread 0 alone. False: there is none.
[[nodiscard]] bool purge(std::uint32_t thread) noexcept;

}  // namespace heaptape::replayer::engine
