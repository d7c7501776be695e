// What an ELF file on disk says about itself: why it cannot be recorded, and which build it is.
//
// Guarantees: any file is legal input; what is no readable ELF file yields `is_elf == false`.
// libelf is used in this file alone. Costs one open and a few reads.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace heaptape::collector {

struct ElfFacts {
  bool is_elf = false;
  bool same_class = false;          // as this program: 64 or 32 bits, and the same machine
  bool dynamic = false;             // names a loader, so that LD_PRELOAD works
  bool go = false;                  // built by the Go compiler
  bool defines_malloc = false;      // exports a malloc of its own
  std::string build_id;             // hex; empty: none
  std::uint64_t first_address = 0;  // page of the first loaded segment, in the file's addresses
};

[[nodiscard]] ElfFacts read_elf(const std::string& path);

// Reads each file once, as long as it stays the same: processes of one recording share most files.
// Bounded; not thread-safe.
class ElfCache {
 public:
  // `status`: of the file `path`, just taken.
  [[nodiscard]] const ElfFacts& facts(const std::string& path, const struct stat& status);

 private:
  using Key = std::tuple<dev_t, ino_t, off_t, std::int64_t>;  // device, inode, size, time of change
  std::map<Key, ElfFacts> known_;
};

}  // namespace heaptape::collector
