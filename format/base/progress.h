// Progress of long work on stderr: one line, redrawn in place, erased at the end.
//
// Shown only when wanted (no -q), when stderr is a terminal, and from half a second on, at most ten
// times a second. One thread.
#pragma once

#include <chrono>
#include <string>

namespace heaptape::format {

class Progress {
 public:
  Progress(bool wanted, std::string label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void update(double share);  // 0 to 1

 private:
  std::string label_;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace heaptape::format
