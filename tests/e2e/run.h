// Runs guests: alone, or under `heaptape record`, and tells everything that can be seen of a run.
//
// Guarantees: the environment of a run is small and fixed, plus what the command asks for; standard
// input is empty; output goes to files, so that a process left behind blocks nobody; a run that
// takes longer than its limit is killed with its whole process group and says so. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace heaptape::e2e {

// A temporary folder, removed with all that is in it.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

struct Command {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // on top of the fixed one
  std::vector<std::string> preload;                // libraries for LD_PRELOAD, behind the recorder's
  std::chrono::seconds limit{120};
};

struct Outcome {
  bool timed_out = false;
  int status = -1;  // as a shell says it: exit status, or 128 + signal
  std::string out;
  std::string err;
  std::map<std::string, std::string> files;  // left in the working folder: name -> content
};

// A process started and not yet waited for.
class Running {
 public:
  // Starts `argv` in `folder`; output to `out` and `err` in `outputs`.
  Running(const Command& command, const std::filesystem::path& folder, const std::filesystem::path& outputs);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();  // kills what still runs
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] Outcome wait();

 private:
  Command command_;
  std::filesystem::path folder_;
  std::filesystem::path outputs_;
  pid_t pid_ = -1;
};

// The command alone, in a fresh working folder.
[[nodiscard]] Outcome run(const Command& command);

struct Recording {
  Folder folder;  // holds work/ (the working folder) and tapes/
  Outcome outcome;
  std::vector<std::filesystem::path> tapes;  // sorted by name
};

// `heaptape record -q OPTIONS... -o tapes/... -- argv`. The preload list is handed on by a shell
// that execs the program, so that its libraries are not loaded into `heaptape` itself.
[[nodiscard]] Command recorded(const Command& command, const std::filesystem::path& tapes,
                               const std::vector<std::string>& options = {});
void record(const Command& command, Recording& recording, const std::vector<std::string>& options = {});
[[nodiscard]] std::vector<std::filesystem::path> tapes_in(const std::filesystem::path& folder);

// A guest's command: its path, then its arguments.
[[nodiscard]] Command guest(const std::string& name, const std::vector<std::string>& arguments = {});
[[nodiscard]] std::string guest_path(const std::string& name);

[[nodiscard]] std::string read_file(const std::filesystem::path& path);

// Test sizes are divided by this where a sanitizer slows the collector and the reader down.
#ifdef HEAPTAPE_SANITIZED
inline constexpr int size_divisor = 20;
#else
inline constexpr int size_divisor = 1;
#endif

}  // namespace heaptape::e2e
