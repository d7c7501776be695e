// Candidates that are found by symbol: the process's own malloc, and libraries with a prefix.
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>

#include <cstring>
#include <initializer_list>

#include "replayer/engine/candidate.h"
#include "replayer/engine/purge.h"
#include "replayer/engine/symbols.h"

namespace heaptape::replayer::engine {

namespace {

using Malloc = void*(std::size_t);
using Calloc = void*(std::size_t, std::size_t);
using Aligned = void*(std::size_t, std::size_t);
using Realloc = void*(void*, std::size_t);
using Free = void(void*);
using Usable = std::size_t(void*);
using Mark = void(int);
using PosixMemalign = int(void**, std::size_t, std::size_t);

// Stand-ins for functions that a library lacks. malloc's signatures carry no context, and there is
// one candidate per process: hence these two pointers.
constinit Malloc* plain_malloc = nullptr;
constinit PosixMemalign* plain_posix_memalign = nullptr;

void* calloc_by_malloc(std::size_t count, std::size_t size_bytes) noexcept {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, size_bytes, &total)) return nullptr;
  void* const block = plain_malloc(total);
  if (block != nullptr) std::memset(block, 0, total);
  return block;
}

void* aligned_by_posix(std::size_t alignment_bytes, std::size_t size_bytes) noexcept {
  void* block = nullptr;
  if (alignment_bytes < sizeof(void*)) alignment_bytes = sizeof(void*);
  return plain_posix_memalign(&block, alignment_bytes, size_bytes) == 0 ? block : nullptr;
}

void* no_aligned(std::size_t, std::size_t) noexcept { return nullptr; }

// Is `file` (as the loader names it) the library that was asked for, a path or a bare name?
bool same_library(const char* file, const char* wanted) noexcept {
  if (file == nullptr) return false;
  if (std::strchr(wanted, '/') != nullptr) {
    struct stat left {};
    struct stat right {};
    return ::stat(file, &left) == 0 && ::stat(wanted, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
  }
  const char* const slash = std::strrchr(file, '/');
  return std::strcmp(slash == nullptr ? file : slash + 1, wanted) == 0;
}

void describe_version(void* library, Text& version) noexcept {
  if (auto* const mi = symbol<int()>(library, "mi_version"); mi != nullptr) {
    version << "mimalloc " << static_cast<std::uint64_t>(mi());
  } else if (auto* const tc = symbol<const char*(int*, int*, const char**)>(library, "tc_version");
             tc != nullptr) {
    version << "tcmalloc " << tc(nullptr, nullptr, nullptr);
  } else if (auto* const je =
                 symbol<int(const char*, void*, std::size_t*, void*, std::size_t)>(library, "mallctl");
             je != nullptr) {
    const char* text = nullptr;
    std::size_t bytes = sizeof text;
    if (je("version", static_cast<void*>(&text), &bytes, nullptr, 0) == 0 && text != nullptr)
      version << "jemalloc " << text;
  } else if (symbol<void*(std::size_t)>(library, "scalable_malloc") != nullptr) {
    version << "tbbmalloc";
  } else if (auto* const gnu = symbol<const char*()>(library, "gnu_get_libc_version");
             gnu != nullptr && library == RTLD_DEFAULT) {
    version << "glibc " << gnu();
  }
}

// Fills the table from PREFIX + name in `library`.
bool fill(const CandidateSetup& setup, void* library, const char* prefix, Candidate& candidate) noexcept {
  const auto lacks = [&](const char* name) {
    setup.message << setup.request.name << ": there is no function " << prefix << name
                  << "; is the prefix right?";
    return false;
  };
  candidate.malloc = symbol<Malloc>(library, prefix, "malloc");
  candidate.calloc = symbol<Calloc>(library, prefix, "calloc");
  candidate.realloc = symbol<Realloc>(library, prefix, "realloc");
  candidate.free = symbol<Free>(library, prefix, "free");
  if (candidate.malloc == nullptr) return lacks("malloc");
  if (candidate.free == nullptr) return lacks("free");
  if (candidate.realloc == nullptr) return lacks("realloc");
  plain_malloc = candidate.malloc;
  if (candidate.calloc == nullptr) candidate.calloc = calloc_by_malloc;

  candidate.aligned = symbol<Aligned>(library, prefix, "memalign");
  if (candidate.aligned == nullptr) candidate.aligned = symbol<Aligned>(library, prefix, "aligned_alloc");
  if (candidate.aligned == nullptr) {
    plain_posix_memalign = symbol<PosixMemalign>(library, prefix, "posix_memalign");
    candidate.aligned = plain_posix_memalign != nullptr ? aligned_by_posix : no_aligned;
    if (plain_posix_memalign == nullptr && setup.demand.aligned) {
      setup.message << setup.request.name << ": the tape asks for aligned blocks, and there is no " << prefix
                    << "memalign, " << prefix << "aligned_alloc or " << prefix << "posix_memalign";
      return false;
    }
  }
  for (const char* name : {"malloc_usable_size", "usable_size", "memsize", "msize", "malloc_size"}) {
    candidate.usable = symbol<Usable>(library, prefix, name);
    if (candidate.usable != nullptr) break;
  }
  candidate.mark = symbol<Mark>(library, "heaptape_mark");
  return true;
}

}  // namespace

bool load_process(const CandidateSetup& setup, Candidate& candidate) noexcept {
  const bool replaced = setup.request.library[0] != '\0';
  const char* const wanted = replaced ? setup.request.library : "libc.so.6";
  const char* const file = file_of(::dlsym(RTLD_DEFAULT, "malloc"));
  if (!same_library(file, wanted)) {
    setup.message << setup.request.name << ": malloc comes from " << (file == nullptr ? "nowhere" : file)
                  << ", not from " << wanted
                  << (replaced ? "; was it preloaded, and does it replace malloc?" : "; unset LD_PRELOAD");
    return false;
  }
  if (!fill(setup, RTLD_DEFAULT, "", candidate)) return false;
  describe_version(RTLD_DEFAULT, setup.version);
  find_purge_call(RTLD_DEFAULT, "", replaced);
  return true;
}

bool load_library(const CandidateSetup& setup, Candidate& candidate) noexcept {
  const EngineRequest& request = setup.request;
  void* const library = ::dlopen(request.library, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    setup.message << request.name << ": cannot load it: " << (reason == nullptr ? "unknown reason" : reason);
    return false;
  }
  if (!fill(setup, library, request.prefix, candidate)) return false;
  // Without a prefix the C library's malloc would be found behind a library that has none.
  const char* const file = file_of(std::bit_cast<const void*>(candidate.malloc));
  if (request.prefix[0] == '\0' && !same_library(file, request.library)) {
    setup.message << request.name << ": malloc comes from " << (file == nullptr ? "nowhere" : file)
                  << ", not from " << request.library << "; give prefix=";
    return false;
  }
  describe_version(library, setup.version);
  find_purge_call(library, request.prefix, true);
  return true;
}

}  // namespace heaptape::replayer::engine
