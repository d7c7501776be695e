#include "replayer/engine/purge.h"

#include <dlfcn.h>

#include <bit>
#include <cstddef>
#include <cstring>

#include "replayer/engine/symbols.h"

namespace heaptape::replayer::engine {

namespace {

using Trim = int(std::size_t);
using Collect = void(bool);
using Mallctl = int(const char*, void*, std::size_t*, void*, std::size_t);
using Release = void();
using Command = int(int, void*);
using Mallopt = int(int, int);

constexpr const char* purge_all_arenas = "arena.4096.purge";  // jemalloc: MALLCTL_ARENAS_ALL
constexpr int clean_all_buffers = 0;                          // TBBMALLOC_CLEAN_ALL_BUFFERS
constexpr int scudo_purge = -101;                             // M_PURGE

// One candidate per process; written before the threads exist.
struct PurgeCalls {
  Trim* trim = nullptr;
  Collect* collect = nullptr;
  Mallctl* control = nullptr;
  Release* release = nullptr;
  Command* command = nullptr;
  Mallopt* option = nullptr;
};
constinit PurgeCalls calls;

// The function, unless it is the C library's own: that one does nothing for another allocator.
template <class Function>
Function* foreign_symbol(void* library, const char* prefix, const char* name) noexcept {
  auto* const found = symbol<Function>(library, prefix, name);
  if (found == nullptr) return nullptr;
  const char* const file = file_of(std::bit_cast<const void*>(found));
  return file != nullptr && std::strstr(file, "/libc.so") == nullptr ? found : nullptr;
}

}  // namespace

void find_purge_call(void* library, const char* prefix, bool foreign) noexcept {
  if (!foreign) {
    calls.trim = symbol<Trim>(library, "malloc_trim");
    return;
  }
  calls.collect = symbol<Collect>(library, "mi_collect");
  if (calls.collect != nullptr) return;
  calls.control = symbol<Mallctl>(library, prefix, "mallctl");
  if (calls.control == nullptr) calls.control = symbol<Mallctl>(library, "mallctl");
  if (calls.control != nullptr) return;
  calls.release = symbol<Release>(library, "MallocExtension_ReleaseFreeMemory");
  if (calls.release != nullptr) return;
  calls.command = symbol<Command>(library, "scalable_allocation_command");
  if (calls.command != nullptr) return;
  calls.trim = foreign_symbol<Trim>(library, prefix, "malloc_trim");
  if (calls.trim != nullptr) return;
  calls.option = foreign_symbol<Mallopt>(library, prefix, "mallopt");
}

bool purge(std::uint32_t thread) noexcept {
  if (calls.collect != nullptr) {
    calls.collect(true);  // the calling thread's heap
    return true;
  }
  if (thread != 0) return false;
  if (calls.control != nullptr) return calls.control(purge_all_arenas, nullptr, nullptr, nullptr, 0) == 0;
  if (calls.release != nullptr) {
    calls.release();
    return true;
  }
  if (calls.command != nullptr) {
    calls.command(clean_all_buffers, nullptr);
    return true;
  }
  if (calls.trim != nullptr) {
    calls.trim(0);
    return true;
  }
  return calls.option != nullptr && calls.option(scudo_purge, 0) != 0;
}

}  // namespace heaptape::replayer::engine
