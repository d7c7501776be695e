#include "format/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace heaptape::format {

using std::chrono::steady_clock;

Progress::Progress(bool wanted, std::string label)
    : label_(std::move(label)),
      enabled_(wanted && isatty(STDERR_FILENO) == 1),
      next_(steady_clock::now() + std::chrono::milliseconds(500)) {}

Progress::~Progress() {
  if (drawn_) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

void Progress::update(double share) {
  if (!enabled_ || steady_clock::now() < next_) {
    return;
  }
  next_ = steady_clock::now() + std::chrono::milliseconds(100);
  constexpr int cells = 30;
  const double part = share > 0 ? std::min(share, 1.0) : 0.0;
  const int full = static_cast<int>(part * cells);
  fmt::print(stderr, "\r{} [{:<{}}] {:3.0f} %\033[K", label_,
             std::string(static_cast<std::size_t>(full), '#'), cells, part * 100);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace heaptape::format
