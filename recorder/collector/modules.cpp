#include "recorder/collector/modules.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "recorder/collector/elf_file.h"

namespace heaptape::collector {

namespace {

std::string_view basename_of(const std::string& path) {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

// The file that is mapped: by its path here, else by its path in the process's own root. The inode
// alone is compared: on overlay file systems the two sides name different devices.
ElfFacts facts_of(pid_t pid, const Mapping& mapping, ElfCache& files) {
  for (const std::string& path : {mapping.path, fmt::format("/proc/{}/root{}", pid, mapping.path)}) {
    struct stat s {};
    if (::stat(path.c_str(), &s) == 0 && s.st_ino == mapping.inode) {
      return files.facts(path, s);
    }
  }
  return {};
}

// Lower is likelier; the executable comes before all libraries, as in the loader's search order.
enum class Rank { executable, known_allocator, other_library, c_library, none };

Rank rank_of(std::string_view name, const ElfFacts& facts, bool is_executable) {
  constexpr std::array known = {"libjemalloc",      "libmimalloc", "libtcmalloc", "libtbbmalloc_proxy",
                                "libsnmallocshim",  "libhoard",    "libscudo",    "librpmalloc",
                                "libsupermalloc",   "libmesh",     "liblockless", "libnedmalloc",
                                "libltmalloc",      "libffmalloc", "libisoalloc", "libhardened_malloc",
                                "libclang_rt.scudo"};
  if (!facts.defines_malloc) {
    return Rank::none;
  }
  if (is_executable) {
    return Rank::executable;
  }
  if (std::ranges::any_of(known, [&](const char* k) { return name.starts_with(k); })) {
    return Rank::known_allocator;
  }
  if (name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl")) {
    return Rank::c_library;
  }
  return name.starts_with("ld-linux") || name.starts_with("ld-2") || name.starts_with("ld64")
             ? Rank::none
             : Rank::other_library;
}

}  // namespace

std::vector<format::ModuleInfo> Modules::update(pid_t pid, const std::vector<Mapping>& mappings) {
  const std::string executable = executable_path(pid);
  std::vector<format::ModuleInfo> fresh;
  Rank best = Rank::none;
  const bool first = allocator_.empty();
  for (std::size_t i = 0; i < mappings.size();) {
    const Mapping& base = mappings[i];
    std::uint64_t end = base.end;
    bool executable_pages = false;
    // The mappings of one loaded file follow each other; a new one begins at file offset 0.
    std::size_t next = i;
    while (next < mappings.size() && mappings[next].path == base.path && mappings[next].inode == base.inode &&
           (next == i || mappings[next].offset != 0)) {
      executable_pages = executable_pages || mappings[next].executable;
      end = mappings[next].end;
      ++next;
    }
    i = next;
    if (!executable_pages || !known_.try_emplace({base.start, base.path}, end - base.start).second) {
      continue;  // a data file, or already told
    }
    const ElfFacts facts = facts_of(pid, base, *files_);
    fresh.push_back({.path = base.path,
                     .build_id = facts.build_id,
                     .load_address = base.start,
                     .size_bytes = end - base.start,
                     .load_bias = base.start - facts.first_address});
    const Rank rank = base.path == preload_path_
                          ? Rank::none
                          : rank_of(basename_of(base.path), facts, base.path == executable);
    if (first && rank < best) {
      best = rank;
      allocator_ = base.path;
    }
  }
  return fresh;
}

}  // namespace heaptape::collector
