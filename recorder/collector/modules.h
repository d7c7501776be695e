// The files mapped into a process, with build ids, and which of them serves malloc.
//
// Guarantees: each file is read once per process image, however often `update` is called. A file
// that was replaced or deleted since it was mapped has no build id rather than a wrong one.
// One thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "format/tape.h"
#include "recorder/collector/elf_file.h"
#include "recorder/collector/proc.h"

namespace heaptape::collector {

class Modules {
 public:
  // `preload_path`: the recorder's own library, which never counts as the allocator.
  // `files` is shared with other processes' modules.
  Modules(std::string preload_path, ElfCache& files)
      : preload_path_(std::move(preload_path)), files_(&files) {}

  // Reads the mappings of `pid` and returns the modules that were not there at the last call.
  [[nodiscard]] std::vector<format::ModuleInfo> update(pid_t pid) { return update(pid, file_mappings(pid)); }
  [[nodiscard]] std::vector<format::ModuleInfo> update(pid_t pid, const std::vector<Mapping>& mappings);

  // Path of the module that most likely serves malloc, after the first `update`; empty: unknown.
  [[nodiscard]] const std::string& allocator() const noexcept { return allocator_; }

 private:
  std::string preload_path_;
  ElfCache* files_;
  std::string allocator_;
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> known_;  // (address, path) -> size
};

}  // namespace heaptape::collector
