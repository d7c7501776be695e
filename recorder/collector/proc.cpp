#include "recorder/collector/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <system_error>

#include "format/base/descriptor.h"

namespace heaptape::collector {

namespace {

constexpr std::size_t largest_proc_file_bytes = 64U << 20;

template <typename T>
bool take_number(std::string_view& text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{}) {
    return false;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

std::string_view basename_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: the whole
}

// "start-end perms offset major:minor inode   path"
bool parse_maps_line(std::string_view line, Mapping& m) {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  if (!take_number(line, m.start, 16) || !take_char(line, '-') || !take_number(line, m.end, 16) ||
      !take_char(line, ' ') || line.size() < 5) {
    return false;
  }
  m.executable = line[2] == 'x';
  line.remove_prefix(4);
  if (!take_char(line, ' ') || !take_number(line, m.offset, 16) || !take_char(line, ' ') ||
      !take_number(line, major, 16) || !take_char(line, ':') || !take_number(line, minor, 16) ||
      !take_char(line, ' ') || !take_number(line, m.inode, 10)) {
    return false;
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  m.path = line;
  return m.start < m.end;
}

// The fields of /proc/PID/stat, numbered as in proc(5).
class StatFields {
 public:
  explicit StatFields(pid_t pid) : text_(read_proc_file(pid, "stat")) {
    // "pid (comm) state ...": comm may hold anything, so begin behind the last parenthesis.
    std::string_view rest(text_);
    const std::size_t close = rest.rfind(')');
    rest.remove_prefix(close == std::string_view::npos ? rest.size() : close + 1);
    while (take_char(rest, ' ')) {
      const std::size_t end = std::min(rest.find_first_of(" \n"), rest.size());
      fields_.push_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
  }
  [[nodiscard]] std::string_view field(std::size_t number) const {
    return number >= 3 && number - 3 < fields_.size() ? fields_[number - 3] : std::string_view{};
  }

 private:
  std::string text_;
  std::vector<std::string_view> fields_;
};

}  // namespace

std::string read_proc_file(pid_t pid, std::string_view name) {
  const format::Descriptor file(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) {
    return text;
  }
  std::array<char, 16384> buffer;
  while (text.size() < largest_proc_file_bytes) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

std::string executable_path(pid_t pid) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), buffer.data(), buffer.size());
  return n > 0 ? std::string(buffer.data(), static_cast<std::size_t>(n)) : std::string();
}

std::uint64_t executable_identity(pid_t pid) {
  struct stat s {};
  if (::stat(fmt::format("/proc/{}/exe", pid).c_str(), &s) != 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(s.st_dev) << 48 ^ static_cast<std::uint64_t>(s.st_ino);
}

std::vector<std::string> command_line(pid_t pid) {
  std::vector<std::string> arguments;
  const std::string text = read_proc_file(pid, "cmdline");
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    arguments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return arguments;
}

std::string full_program_name(std::string_view comm, std::string_view executable,
                              const std::vector<std::string>& arguments) {
  constexpr std::size_t longest_comm = 15;  // the kernel cuts there
  if (comm.size() < longest_comm) {
    return std::string(comm.empty() ? basename_of(executable) : comm);
  }
  for (const std::string& candidate : arguments) {
    if (basename_of(candidate).starts_with(comm)) {
      return std::string(basename_of(candidate));
    }
  }
  return std::string(basename_of(executable).starts_with(comm) ? basename_of(executable) : comm);
}

std::string program_name(pid_t pid) {
  std::string comm = read_proc_file(pid, "comm");
  while (!comm.empty() && comm.back() == '\n') {
    comm.pop_back();
  }
  return full_program_name(comm, executable_path(pid), command_line(pid));
}

pid_t parent_of(pid_t pid) {
  const StatFields stat(pid);
  std::string_view text = stat.field(4);
  pid_t parent = 0;
  return take_number(text, parent, 10) ? parent : 0;
}

std::optional<int> zombie_status(pid_t pid) {
  const StatFields stat(pid);
  std::string_view text = stat.field(52);
  int status = 0;
  if (stat.field(3) != "Z" || !take_number(text, status, 10)) {
    return std::nullopt;
  }
  return status;
}

std::string thread_name(pid_t pid, pid_t tid) {
  std::string name = read_proc_file(pid, fmt::format("task/{}/comm", tid));
  while (!name.empty() && name.back() == '\n') {
    name.pop_back();
  }
  return name;
}

bool thread_exists(pid_t pid, pid_t tid) {
  return ::syscall(SYS_tgkill, pid, tid, 0) == 0 || (errno != ESRCH && errno != EINVAL);
}

std::vector<std::uint32_t> threads_by_inner_number(pid_t pid) {
  std::vector<std::uint32_t> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    const std::string status =
        read_proc_file(pid, fmt::format("task/{}/status", entry.path().filename().native()));
    constexpr std::string_view key = "\nNSpid:";
    const std::size_t at = status.find(key);
    if (at == std::string::npos) {
      continue;  // just ended
    }
    // One number per nested namespace, the innermost last.
    std::string_view line = std::string_view(status).substr(at + key.size());
    line = line.substr(0, line.find('\n'));
    line.remove_prefix(std::min(line.find_last_of("\t ") + 1, line.size()));
    std::uint32_t number = 0;
    if (take_number(line, number, 10)) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

std::optional<MemoryUse> memory_use(pid_t pid) {
  const std::string text = read_proc_file(pid, "statm");
  std::string_view rest(text);
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;
  if (!take_number(rest, size, 10) || !take_char(rest, ' ') || !take_number(rest, resident, 10) ||
      !take_char(rest, ' ') || !take_number(rest, shared, 10) || size == 0) {
    return std::nullopt;  // gone, or a zombie without memory
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return MemoryUse{resident * page, (resident - std::min(resident, shared)) * page};
}

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Mapping m;
    if (parse_maps_line(text.substr(0, end), m) && m.inode != 0 && m.path.starts_with('/')) {
      mappings.push_back(std::move(m));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return mappings;
}

std::vector<Mapping> file_mappings(pid_t pid) { return parse_maps(read_proc_file(pid, "maps")); }

std::vector<pid_t> processes_with(std::string_view entry) {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) {
    return found;
  }
  const std::string wanted = fmt::format("{}{}{}", '\0', entry, '\0');
  while (const dirent* item = ::readdir(proc.get())) {
    std::string_view name(item->d_name);
    pid_t pid = 0;
    if (!take_number(name, pid, 10) || !name.empty() || pid == ::getpid()) {
      continue;
    }
    const std::string environment = '\0' + read_proc_file(pid, "environ");
    if (environment.find(wanted) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

}  // namespace heaptape::collector
