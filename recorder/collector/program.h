// The program to record: found as a shell finds it, started, watched, waited for.
//
// Guarantees: the program keeps stdin, stdout, stderr, process group, signal mask and dispositions,
// working directory and limits; it gets no descriptor of ours. Destroying a Program that still runs
// leaves it running. One thread.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "format/base/descriptor.h"
#include "format/base/error.h"

namespace heaptape::collector {

// `name` with a slash is itself; otherwise the first executable file of that name on `search_path`
// (as execvp: an empty part is the working directory). Errors: usage where there is none, system
// where there is one that may not be executed.
[[nodiscard]] format::Result<std::string> find_program(const std::string& name, const char* search_path);

// Why a program whose file is `path` cannot be recorded by LD_PRELOAD, as the end of a sentence;
// empty: no reason known.
[[nodiscard]] std::string why_not_recordable(const std::string& path);

struct ProgramEnd {
  bool killed = false;
  int value = 0;  // exit status or signal number
  rusage usage{};
  // As a shell says it: the status, or 128 + signal.
  [[nodiscard]] int shell_status() const noexcept { return killed ? 128 + value : value; }
};

struct SignalState {  // what the program must find
  sigset_t mask{};
  sigset_t defaults{};  // set back to their default actions
};

class Program {
 public:
  // Starts `path` with `arguments` (argv[0] first), this environment with `extra` ("NAME=value")
  // replacing what is there. Errors: system (the file could not be executed).
  [[nodiscard]] static format::Result<Program> start(const std::string& path,
                                                     const std::vector<std::string>& arguments,
                                                     const std::vector<std::string>& extra,
                                                     const SignalState& signals);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }  // readable once it has ended
  // How it ended; nothing while it runs. Reaps the process.
  [[nodiscard]] const std::optional<ProgramEnd>& poll_end();
  void send_signal(int signal_number) const;

 private:
  Program(pid_t pid, format::Descriptor pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_ = 0;
  format::Descriptor pidfd_;
  std::optional<ProgramEnd> end_;
};

// A pidfd for any process; invalid where the process is gone.
[[nodiscard]] format::Descriptor open_pidfd(pid_t pid);
// How a process that is not our child ended: while its parent has not asked yet, or on Linux 6.15
// and later; otherwise nobody can tell.
[[nodiscard]] std::optional<ProgramEnd> end_of(pid_t pid, int pidfd);

}  // namespace heaptape::collector
