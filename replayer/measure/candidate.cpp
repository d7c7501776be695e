#include "replayer/measure/candidate.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <system_error>

#include "replayer/measure/tunables.h"

namespace heaptape::replayer {

using format::ExitCode;
using format::failure;
using format::Result;

namespace {

const KnownAllocator* find_known(std::string_view name) {
  const auto all = known_allocators();
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const KnownAllocator& k) { return k.name == name; });
  return known == all.end() ? nullptr : &*known;
}

std::string known_names() {
  std::string names;
  for (const KnownAllocator& k : known_allocators()) {
    names += names.empty() ? "" : ", ";
    names += k.name;
  }
  return names;
}

// The library the user named: a path, or a name to look for.
Result<std::filesystem::path> user_library(std::string_view name, std::string_view text) {
  std::filesystem::path path(text);
  if (text.find('/') == std::string_view::npos && !std::filesystem::exists(path)) {
    const std::array<std::string_view, 1> files{text};
    path = find_library(files);
  }
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (path.empty() || error || !std::filesystem::is_regular_file(absolute, error)) {
    return failure(ExitCode::usage, "-a {}={}: no such library; give its path", name, text);
  }
  return absolute;
}

}  // namespace

std::span<const KnownAllocator> known_allocators() {
  using enum TunableForm;
  static const std::vector<KnownAllocator> all = {
      {"glibc", Access::process, {}, "", glibc, "", "malloc_trim"},
      {"mimalloc",
       Access::preload,
       {"libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so.1", "libmimalloc.so"},
       "libmimalloc2.0",
       upper_case_variables,
       "MIMALLOC_",
       "mi_collect"},
      {"jemalloc",
       Access::preload,
       {"libjemalloc.so.2", "libjemalloc.so"},
       "libjemalloc2",
       malloc_conf,
       "",
       "mallctl arena.<all>.purge"},
      {"tcmalloc",
       Access::preload,
       {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so", "libtcmalloc.so"},
       "libtcmalloc-minimal4",
       upper_case_variables,
       "TCMALLOC_",
       "MallocExtension_ReleaseFreeMemory"},
      {"tbbmalloc",
       Access::preload,
       {"libtbbmalloc_proxy.so.2", "libtbbmalloc_proxy.so"},
       "libtbbmalloc2",
       upper_case_variables,
       "TBB_MALLOC_",
       "scalable_allocation_command"},
      {"scudo",
       Access::preload,
       {"libclang_rt.scudo_standalone-x86_64.so", "libclang_rt.scudo_standalone-aarch64.so",
        "libclang_rt.scudo_standalone.so"},
       "libclang-rt-14-dev",
       scudo_options,
       "",
       "mallopt M_PURGE"},
      {"arena", Access::builtin, {}, "", request, "", ""},
      {"null", Access::builtin, {}, "", none, "", ""},
  };
  return all;
}

std::vector<std::filesystem::path> library_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* path = std::getenv("LD_LIBRARY_PATH"); path != nullptr) {
    std::string_view rest(path);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end != 0) {
        folders.emplace_back(rest.substr(0, end));
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  folders.emplace_back("/usr/local/lib");
  // Where the C library is, the others of the same architecture are too (Debian's multiarch folders).
  // The address of a function, so that dladdr names the library and not us.
  if (Dl_info info{}; ::dladdr(::dlsym(RTLD_DEFAULT, "malloc_usable_size"), &info) != 0) {
    std::error_code error;
    if (const auto libc = std::filesystem::canonical(info.dli_fname, error); !error) {
      folders.push_back(libc.parent_path());
    }
  }
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    folders.emplace_back(folder);
  }
  // clang keeps its runtime libraries to itself; the newest first.
  std::vector<std::filesystem::path> runtimes;
  std::error_code error;
  for (const auto& llvm : std::filesystem::directory_iterator("/usr/lib", error)) {
    if (llvm.path().filename().string().starts_with("llvm-")) {
      std::error_code none;
      for (const auto& version : std::filesystem::directory_iterator(llvm.path() / "lib/clang", none)) {
        runtimes.push_back(version.path() / "lib/linux");
      }
    }
  }
  std::sort(runtimes.rbegin(), runtimes.rend());
  folders.insert(folders.end(), runtimes.begin(), runtimes.end());
  return folders;
}

std::filesystem::path find_library(std::span<const std::string_view> files) {
  const auto folders = library_folders();
  for (const std::string_view file : files) {
    for (const auto& folder : folders) {
      std::error_code error;
      if (auto path = folder / file; std::filesystem::is_regular_file(path, error)) {
        return path;
      }
    }
  }
  return {};
}

Result<Candidate> parse_candidate(std::string_view text) {
  const std::size_t name_end = std::min(text.find_first_of("=:"), text.size());
  const std::string_view name = text.substr(0, name_end);
  std::string_view rest = text.substr(name_end);
  const KnownAllocator* known = find_known(name);
  if (name.empty()) {
    return failure(ExitCode::usage, "-a {}: no name; write NAME or NAME=LIB[,prefix=P]", text);
  }
  Candidate candidate;
  candidate.name = name;
  candidate.label = name;
  if (rest.starts_with('=')) {
    rest.remove_prefix(1);
    const std::size_t library_end = std::min(rest.find(':'), rest.size());
    std::string_view library = rest.substr(0, library_end);
    rest.remove_prefix(library_end);
    candidate.access = Access::preload;
    if (const std::size_t comma = library.find(",prefix="); comma != std::string_view::npos) {
      candidate.prefix = library.substr(comma + std::string_view(",prefix=").size());
      library = library.substr(0, comma);
      candidate.access = Access::library;
    }
    if (known != nullptr && known->access != Access::preload) {
      return failure(ExitCode::usage, "-a {}: {} is no library; choose another name", text, name);
    }
    auto path = user_library(name, library);
    if (!path) {
      return format::Failure(path.error());
    }
    candidate.library = std::move(*path);
  } else if (known == nullptr) {
    return failure(ExitCode::usage, "-a {}: not known; there are {}, and NAME=LIB[,prefix=P] for any other",
                   name, known_names());
  } else {
    candidate.access = known->access;
    if (known->access == Access::preload) {
      candidate.library = find_library(known->files);
      if (candidate.library.empty()) {
        return failure(ExitCode::usage, "-a {}: not installed; install the package {}, or write {}=PATH",
                       name, known->package, name);
      }
    }
  }
  // The dynamic linker splits LD_PRELOAD at both, and knows no way to quote them.
  if (candidate.access == Access::preload &&
      candidate.library.native().find_first_of(": ") != std::string::npos) {
    return failure(ExitCode::usage, "-a {}: LD_PRELOAD cannot hold a path with a blank or a colon: {}", name,
                   candidate.library.native());
  }
  if (rest.starts_with(':')) {
    candidate.label += rest;
    HEAPTAPE_TRY(apply_tunables(candidate, known, rest.substr(1)));
  }
  return candidate;
}

Result<std::vector<Candidate>> parse_candidates(std::span<const std::string> texts) {
  std::vector<Candidate> candidates;
  std::map<std::string, int> seen;
  for (const std::string& text : texts) {
    auto candidate = parse_candidate(text);
    if (!candidate) {
      return format::Failure(candidate.error());
    }
    if (const int times = ++seen[candidate->label]; times > 1) {
      candidate->label += fmt::format("#{}", times);
    }
    candidates.push_back(std::move(*candidate));
  }
  return candidates;
}

std::vector<Candidate> installed_candidates() {
  std::vector<Candidate> candidates;
  for (const KnownAllocator& known : known_allocators()) {
    auto candidate = parse_candidate(known.name);
    if (candidate && known.name != "null") {
      candidates.push_back(std::move(*candidate));
    }
  }
  return candidates;
}

}  // namespace heaptape::replayer
