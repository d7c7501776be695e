#include "recorder/collector/tape_names.h"

#include <fmt/format.h>

namespace heaptape::collector {

namespace fs = std::filesystem;

namespace {

// A program may be called anything; a slash or a control character must not get into a file name.
std::string file_name_part(std::string_view text) {
  std::string part(text);
  for (char& c : part) {
    if (c == '/' || static_cast<unsigned char>(c) < 0x20) {
      c = '_';
    }
  }
  return part.empty() ? "unknown" : part;
}

}  // namespace

format::Result<TapeNames> TapeNames::parse(std::string_view pattern, std::time_t started) {
  bool has_pid = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      continue;
    }
    const char c = ++i < pattern.size() ? pattern[i] : '\0';
    if (c != 'p' && c != 'e' && c != 't' && c != '%') {
      return format::failure(format::ExitCode::usage,
                             "-o {}: after % only p (process id), e (program), t (time) or % may stand",
                             pattern);
    }
    has_pid = has_pid || c == 'p';
  }
  if (pattern.empty() || pattern.back() == '/') {
    return format::failure(format::ExitCode::usage, "-o '{}' names no file: give one, e.g. -o run.tape",
                           pattern);
  }
  std::tm local{};
  localtime_r(&started, &local);
  std::string time(32, '\0');
  time.resize(std::strftime(time.data(), time.size(), "%Y%m%d-%H%M%S", &local));
  return TapeNames(std::string(pattern), std::move(time), has_pid);
}

fs::path TapeNames::plain(pid_t pid, std::string_view program) const {
  std::string name;
  for (std::size_t i = 0; i < pattern_.size(); ++i) {
    if (pattern_[i] != '%') {
      name += pattern_[i];
      continue;
    }
    switch (pattern_[++i]) {
      case 'p':
        name += std::to_string(pid);
        break;
      case 'e':
        name += file_name_part(program);
        break;
      case 't':
        name += time_;
        break;
      default:
        name += '%';
    }
  }
  return name;
}

fs::path TapeNames::other(pid_t pid, std::string_view program) const {
  fs::path name = plain(pid, program);
  return has_pid_ ? name : with_infix(name, std::to_string(pid));
}

fs::path TapeNames::replaced(const fs::path& path) const {
  for (unsigned n = 1;; ++n) {
    fs::path name = with_infix(path, fmt::format("replaced-{}", n));
    if (!taken_.contains(name)) {
      return name;
    }
  }
}

fs::path TapeNames::untaken(const fs::path& path) const {
  if (!taken_.contains(path)) {
    return path;
  }
  for (unsigned n = 2;; ++n) {
    fs::path name = with_infix(path, std::to_string(n));
    if (!taken_.contains(name)) {
      return name;
    }
  }
}

pid_t TapeNames::holder(const fs::path& path) const {
  const auto found = taken_.find(path);
  return found == taken_.end() ? 0 : found->second;
}

fs::path with_infix(const fs::path& path, std::string_view infix) {
  fs::path name = path.stem();
  name += ".";
  name += infix;
  name += path.extension();
  return path.parent_path() / name;
}

}  // namespace heaptape::collector
