#include "tests/e2e/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace heaptape::e2e {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> environment_of(const Command& command) {
  std::map<std::string, std::string> variables = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, {"LANG", "C"}, {"HOME", "/nonexistent"}};
  for (const char* sanitizer : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(sanitizer)) {
      variables[sanitizer] = value;
    }
  }
  for (const std::string& library : command.preload) {
    std::string& list = variables["LD_PRELOAD"];
    list += (list.empty() ? "" : ":") + library;
  }
  for (const auto& [name, value] : command.environment) {
    variables[name] = value;
  }
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) {
    result.push_back(name + "=" + value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) {
    result.push_back(string.data());
  }
  result.push_back(nullptr);
  return result;
}

void redirect(const char* path, int flags, int fd) {
  const int opened = ::open(path, flags, 0600);
  if (opened < 0 || ::dup2(opened, fd) < 0) {
    ::_exit(126);
  }
  ::close(opened);
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
    }
  }
  return files;
}

}  // namespace

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "heaptape-e2e-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), name);
  }
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Running::Running(const Command& command, const fs::path& folder, const fs::path& outputs)
    : command_(command), folder_(folder), outputs_(outputs) {
  std::vector<std::string> variables = environment_of(command_);
  std::vector<char*> argv = pointers(command_.argv);
  std::vector<char*> environment = pointers(variables);
  const std::string out = (outputs_ / "out").string();
  const std::string err = (outputs_ / "err").string();
  pid_ = ::fork();
  if (pid_ < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (pid_ == 0) {
    ::setpgid(0, 0);
    if (::chdir(folder_.c_str()) != 0) {
      ::_exit(126);
    }
    redirect("/dev/null", O_RDONLY, 0);
    redirect(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 1);
    redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 2);
    ::execvpe(argv[0], argv.data(), environment.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);  // Also from here, so that a kill of the group cannot come too early.
}

Running::~Running() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

Outcome Running::wait() {
  Outcome outcome;
  const auto deadline = std::chrono::steady_clock::now() + command_.limit;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      outcome.timed_out = true;
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(outputs_ / "out");
  outcome.err = read_file(outputs_ / "err");
  outcome.files = files_in(folder_);
  return outcome;
}

Outcome run(const Command& command) {
  const Folder folder;
  fs::create_directory(folder.path() / "work");
  return Running(command, folder.path() / "work", folder.path()).wait();
}

Command recorded(const Command& command, const fs::path& tapes, const std::vector<std::string>& options) {
  Command result = command;
  result.argv = {HEAPTAPE_BINARY, "record", "-q"};
  result.argv.insert(result.argv.end(), options.begin(), options.end());
  result.argv.insert(result.argv.end(), {"-o", (tapes / "%e.%p.tape").string(), "--"});
  if (!command.preload.empty()) {
    std::string libraries;
    for (const std::string& library : command.preload) {
      libraries += ":" + library;
    }
    result.argv.insert(result.argv.end(),
                       {"/bin/sh", "-c", "LD_PRELOAD=\"$LD_PRELOAD" + libraries + "\" exec \"$@\"", "sh"});
    result.preload.clear();
  }
  result.argv.insert(result.argv.end(), command.argv.begin(), command.argv.end());
  return result;
}

std::vector<fs::path> tapes_in(const fs::path& folder) {
  std::vector<fs::path> tapes;
  for (const auto& entry : fs::directory_iterator(folder)) {
    tapes.push_back(entry.path());
  }
  std::sort(tapes.begin(), tapes.end());
  return tapes;
}

void record(const Command& command, Recording& recording, const std::vector<std::string>& options) {
  const fs::path& folder = recording.folder.path();
  fs::create_directory(folder / "work");
  fs::create_directory(folder / "tapes");
  recording.outcome = Running(recorded(command, folder / "tapes", options), folder / "work", folder).wait();
  recording.tapes = tapes_in(folder / "tapes");
}

std::string guest_path(const std::string& name) { return std::string(HEAPTAPE_GUESTS) + "/" + name; }

Command guest(const std::string& name, const std::vector<std::string>& arguments) {
  Command command;
  command.argv = {guest_path(name)};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return command;
}

std::string read_file(const fs::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

}  // namespace heaptape::e2e
