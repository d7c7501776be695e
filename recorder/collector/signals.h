// The signals that end a recording, read as a descriptor instead of by handlers.
//
// Guarantees: from construction to destruction SIGINT, SIGQUIT, SIGTERM and SIGHUP are blocked in
// this thread and wait here to be read; SIGXFSZ and SIGPIPE are ignored, so that a full or limited
// file system is an error of write(2). All is restored at the end; `for_program` undoes it for a
// started program. Construct before any other thread exists. One per process.
#pragma once

#include <signal.h>

#include <optional>

#include "format/base/descriptor.h"
#include "recorder/collector/program.h"

namespace heaptape::collector {

class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  struct Received {
    int number = 0;
    bool from_terminal = false;  // a key: the program has got it too
  };
  [[nodiscard]] std::optional<Received> next();

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] SignalState for_program() const noexcept { return {old_mask_, defaults_}; }

 private:
  format::Descriptor fd_;
  sigset_t old_mask_{};
  sigset_t defaults_{};
  struct sigaction old_xfsz_ {};
  struct sigaction old_pipe_ {};
};

}  // namespace heaptape::collector
