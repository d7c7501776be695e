// Which file each recorded process image writes to.
//
// Guarantees: two images of one recording never get the same path. The image that a process runs
// now has the process's own name; the name of an image that exec replaced is `replaced`.
// Pure computation: creates, renames and looks at no file. One thread.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "format/base/error.h"

namespace heaptape::collector {

class TapeNames {
 public:
  // `pattern`: %p process id, %e program, %t start of the recording (YYYYmmdd-HHMMSS, local time),
  // %% a percent sign. Anything else after % is a usage error, and so is an empty name.
  [[nodiscard]] static format::Result<TapeNames> parse(std::string_view pattern, std::time_t started);

  // The name of the process that FILE is meant for.
  [[nodiscard]] std::filesystem::path plain(pid_t pid, std::string_view program) const;
  // The name of any other process: `.PID` before the extension, unless the pattern holds %p.
  [[nodiscard]] std::filesystem::path other(pid_t pid, std::string_view program) const;
  // `path` with `.replaced-N` before the extension: the first N not taken.
  [[nodiscard]] std::filesystem::path replaced(const std::filesystem::path& path) const;
  // `path` itself, or with `.2`, `.3`, ... before the extension where it is taken.
  [[nodiscard]] std::filesystem::path untaken(const std::filesystem::path& path) const;

  void take(const std::filesystem::path& path, pid_t pid) { taken_[path] = pid; }
  void release(const std::filesystem::path& path) { taken_.erase(path); }
  // The process that holds `path`; 0: none.
  [[nodiscard]] pid_t holder(const std::filesystem::path& path) const;

 private:
  TapeNames(std::string pattern, std::string time, bool has_pid)
      : pattern_(std::move(pattern)), time_(std::move(time)), has_pid_(has_pid) {}

  std::string pattern_;
  std::string time_;
  bool has_pid_ = false;
  std::map<std::filesystem::path, pid_t> taken_;
};

// `path` with `.infix` before its extension: ("a/x.tape", "17") -> "a/x.17.tape".
[[nodiscard]] std::filesystem::path with_infix(const std::filesystem::path& path, std::string_view infix);

}  // namespace heaptape::collector
