#include "recorder/collector/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace heaptape::collector {

Signals::Signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    sigaddset(&wanted, number);
  }
  sigprocmask(SIG_BLOCK, &wanted, &old_mask_);
  fd_ = format::Descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));

  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &old_xfsz_);
  sigaction(SIGPIPE, &ignore, &old_pipe_);
  sigemptyset(&defaults_);
  if (old_xfsz_.sa_handler == SIG_DFL) {
    sigaddset(&defaults_, SIGXFSZ);
  }
  if (old_pipe_.sa_handler == SIG_DFL) {
    sigaddset(&defaults_, SIGPIPE);
  }
}

Signals::~Signals() {
  sigaction(SIGXFSZ, &old_xfsz_, nullptr);
  sigaction(SIGPIPE, &old_pipe_, nullptr);
  // A signal that came after the last `next` would end us now, with every tape finished: drop it.
  while (next()) {
  }
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

std::optional<Signals::Received> Signals::next() {
  signalfd_siginfo info{};
  if (!fd_ || ::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return Received{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace heaptape::collector
