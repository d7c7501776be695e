// What the recorder tells the user while a program runs: lines on stderr, "heaptape: " in front.
//
// The program shares that terminal, so there is little: notes (not with -q) and warnings (always),
// each one line. Warnings are kept for the summary. One thread.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace heaptape::collector {

class Notes {
 public:
  explicit Notes(bool quiet, std::FILE* out = stderr) : out_(out), quiet_(quiet) {}

  template <typename... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    if (!quiet_) {
      print(fmt::format(text, std::forward<Args>(args)...));
    }
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) {
    warnings_.push_back(fmt::format(text, std::forward<Args>(args)...));
    print(warnings_.back());
  }
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  // Without fmt::print, which throws where nobody reads: a closed stderr must not end a recording.
  void print(const std::string& line) {
    std::fputs(("heaptape: " + line + "\n").c_str(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  std::vector<std::string> warnings_;
  bool quiet_;
};

}  // namespace heaptape::collector
