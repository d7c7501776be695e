// Candidates: the allocators a tape can be replayed against, and how each is brought in.
//
// Written  NAME[=LIB[,prefix=P]][:KEY=VALUE,...]
//   glibc                          a known one, found without a path
//   mimalloc=/opt/libmimalloc.so   a known one from elsewhere
//   mine=libmine.so                any library that replaces malloc: by LD_PRELOAD
//   ned=libnedmalloc.so,prefix=ned any library with its own names: nedmalloc, nedfree, ...
//   jemalloc:dirty_decay_ms=0      settings, in that allocator's own words
// Settings of an allocator that is not known here are environment variables, as they stand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/error.h"

namespace heaptape::replayer {

enum class Access { builtin, process, preload, library };

// How an allocator takes its settings.
enum class TunableForm { none, request, glibc, malloc_conf, upper_case_variables, scudo_options, variables };

struct KnownAllocator {
  std::string_view name;
  Access access;
  std::vector<std::string_view> files;  // names to look for, the best first
  std::string_view package;             // Debian's
  TunableForm tunables;
  std::string_view tunable_prefix;  // of environment variables
  std::string_view purge;           // the call that gives memory back, by name
};

[[nodiscard]] std::span<const KnownAllocator> known_allocators();

struct Candidate {
  std::string label;  // unique in a replay
  std::string name;   // without settings
  Access access = Access::process;
  std::filesystem::path library;  // empty: built in, or the C library
  std::string prefix;
  std::string tunables;                  // for built-in heaps
  std::vector<std::string> environment;  // "KEY=VALUE"
  std::uint64_t arena_bytes = 0;         // arena: memory to lend; 0: the engine decides
};

// Where shared libraries are looked for, in this order.
[[nodiscard]] std::vector<std::filesystem::path> library_folders();
// The first of `files` in the folders; empty: not installed.
[[nodiscard]] std::filesystem::path find_library(std::span<const std::string_view> files);

// Errors: usage, and say which package to install or which names there are.
[[nodiscard]] format::Result<Candidate> parse_candidate(std::string_view text);
[[nodiscard]] format::Result<std::vector<Candidate>> parse_candidates(std::span<const std::string> texts);
// All that are installed, and the arena; without null.
[[nodiscard]] std::vector<Candidate> installed_candidates();

}  // namespace heaptape::replayer
