#include "recorder/collector/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "recorder/collector/elf_file.h"
#include "recorder/collector/proc.h"

namespace heaptape::collector {

namespace {

bool is_executable_file(const std::string& path, int& reason) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) {
    reason = errno;
    return false;
  }
  if (!S_ISREG(s.st_mode)) {
    reason = S_ISDIR(s.st_mode) ? EISDIR : EACCES;
    return false;
  }
  if (::access(path.c_str(), X_OK) != 0) {
    reason = errno;
    return false;
  }
  return true;
}

format::Failure not_found(const std::string& path, int reason) {
  if (reason == ENOENT || reason == ENOTDIR) {
    return format::failure(format::ExitCode::usage, "{}: no such program; check the name after --", path);
  }
  const char* advice = reason == EACCES ? "; is it executable (chmod +x)?" : "";
  return format::failure(format::ExitCode::system, "{}: cannot be executed: {}{}", path,
                         std::generic_category().message(reason), advice);
}

// "NAME=value" entries of this process with those of `extra` in place of the same names.
std::vector<std::string> environment_with(const std::vector<std::string>& extra) {
  std::vector<std::string> entries;
  for (char** item = environ; item != nullptr && *item != nullptr; ++item) {
    const std::string_view entry(*item);
    const bool replaced = std::ranges::any_of(extra, [&](const std::string& e) {
      return entry.starts_with(std::string_view(e).substr(0, e.find('=') + 1));
    });
    if (!replaced) {
      entries.emplace_back(entry);
    }
  }
  entries.insert(entries.end(), extra.begin(), extra.end());
  return entries;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& t : texts) {
    pointers.push_back(const_cast<char*>(t.c_str()));  // exec takes char*, and does not write
  }
  pointers.push_back(nullptr);
  return pointers;
}

// fork and exec by hand: posix_spawn would leave the C library's two internal signals ignored in
// the program. Returns 0 or the error number of exec; `pid` is then gone again.
int spawn(const std::string& path, const std::vector<std::string>& arguments,
          const std::vector<std::string>& environment, const SignalState& signals, pid_t& pid) {
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return errno;
  }
  format::Descriptor failed(ends[0]);
  format::Descriptor report(ends[1]);
  pid = ::fork();
  if (pid < 0) {
    return errno;
  }
  if (pid == 0) {  // only calls that are safe after fork, from here on
    for (int number = 1; number < NSIG; ++number) {
      if (sigismember(&signals.defaults, number) == 1) {
        ::signal(number, SIG_DFL);
      }
    }
    ::sigprocmask(SIG_SETMASK, &signals.mask, nullptr);
    ::execve(path.c_str(), argv.data(), envp.data());
    const int error = errno;
    const ssize_t written = ::write(report.get(), &error, sizeof error);
    ::_exit(written > 0 ? 127 : 126);
  }
  report.reset();
  int error = 0;
  if (::read(failed.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error)) {
    ::waitpid(pid, nullptr, 0);
    return error;
  }
  return 0;
}

std::optional<int> status_of_reaped(int pidfd) {
  // PIDFD_GET_INFO, which the headers of older systems do not name.
  struct PidfdInfo {
    std::uint64_t mask;
    std::uint64_t cgroup_id;
    std::array<std::uint32_t, 11> ids;
    std::int32_t exit_code;
  };
  static_assert(sizeof(PidfdInfo) == 64);
  constexpr std::uint64_t with_exit_code = 1U << 3;
  PidfdInfo info{};
  info.mask = with_exit_code;
  constexpr unsigned long get_info = _IOWR(0xFF, 11, PidfdInfo);
  if (::ioctl(pidfd, get_info, &info) != 0 || (info.mask & with_exit_code) == 0) {
    return std::nullopt;
  }
  return info.exit_code;
}

ProgramEnd end_from_status(int status) {
  ProgramEnd end;
  end.killed = WIFSIGNALED(status);
  end.value = end.killed ? WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

}  // namespace

format::Result<std::string> find_program(const std::string& name, const char* search_path) {
  int reason = ENOENT;
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name, reason)) {
      return name;
    }
    return not_found(name, reason);
  }
  std::string_view rest(search_path != nullptr ? search_path : "/bin:/usr/bin");
  while (!name.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string directory(rest.substr(0, colon));
    int here = ENOENT;
    const std::string path = (directory.empty() ? "." : directory) + "/" + name;
    if (is_executable_file(path, here)) {
      return path;
    }
    reason = here == EACCES ? EACCES : reason;
    if (colon == rest.size()) {
      break;
    }
    rest.remove_prefix(colon + 1);
  }
  if (reason == EACCES) {
    return not_found(name, reason);
  }
  return format::failure(format::ExitCode::usage, "{}: no such program on PATH; check the name after --",
                         name.empty() ? "''" : name);
}

std::string why_not_recordable(const std::string& path) {
  const ElfFacts facts = read_elf(path);
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0 || !facts.is_elf) {
    return {};
  }
  const bool other_user = (s.st_mode & S_ISUID) != 0 && s.st_uid != ::geteuid();
  const bool other_group = (s.st_mode & S_ISGID) != 0 && s.st_gid != ::getegid();
  if (!facts.same_class) {
    return "is built for another processor or word size than heaptape (a 32-bit program?)";
  }
  if (!facts.dynamic) {
    return facts.go ? "is a statically linked Go program, which has an allocator of its own"
                    : "is statically linked, so nothing can be preloaded into it";
  }
  if (other_user || other_group || ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "runs with other rights than yours (setuid, setgid or file capabilities), so the loader "
           "ignores LD_PRELOAD";
  }
  if (facts.defines_malloc) {
    return "brings an allocator of its own, linked into the program";
  }
  return {};
}

format::Result<Program> Program::start(const std::string& path, const std::vector<std::string>& arguments,
                                       const std::vector<std::string>& extra, const SignalState& signals) {
  const std::vector<std::string> environment = environment_with(extra);
  pid_t pid = 0;
  int error = spawn(path, arguments, environment, signals, pid);
  if (error == ENOEXEC) {  // a script without "#!": to the shell, as execvp does
    std::vector<std::string> shell = {"/bin/sh", path};
    shell.insert(shell.end(), arguments.begin() + 1, arguments.end());
    error = spawn(shell[0], shell, environment, signals, pid);
  }
  if (error == ENOENT) {  // the file is there
    return format::failure(format::ExitCode::system,
                           "{}: cannot be executed: the interpreter or loader that it names does not exist",
                           path);
  }
  if (error != 0) {
    return not_found(path, error);
  }
  format::Descriptor pidfd = open_pidfd(pid);
  if (!pidfd) {
    return format::system_failure("pidfd_open (Linux 5.3 or later is needed)", errno);
  }
  return Program(pid, std::move(pidfd));
}

const std::optional<ProgramEnd>& Program::poll_end() {
  if (!end_) {
    int status = 0;
    rusage usage{};
    if (::wait4(pid_, &status, WNOHANG, &usage) == pid_) {
      end_ = end_from_status(status);
      end_->usage = usage;
    }
  }
  return end_;
}

void Program::send_signal(int signal_number) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal_number, nullptr, 0);
}

format::Descriptor open_pidfd(pid_t pid) {
  return format::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by itself
}

std::optional<ProgramEnd> end_of(pid_t pid, int pidfd) {
  // A zombie still has its status in /proc; once it is reaped, the pidfd has it. It may be reaped
  // between the two looks, hence three.
  for (int look = 0; look < 2; ++look) {
    if (const auto status = status_of_reaped(pidfd)) {
      return end_from_status(*status);
    }
    if (const auto status = look == 0 ? zombie_status(pid) : std::nullopt) {
      return end_from_status(*status);
    }
  }
  return std::nullopt;
}

}  // namespace heaptape::collector
