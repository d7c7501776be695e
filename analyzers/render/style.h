// Colours for text on a terminal; nothing elsewhere, nor where NO_COLOR is set (no-color.org).
#pragma once

#include <string>
#include <string_view>

namespace heaptape::analyzers {

class Style {
 public:
  explicit Style(bool coloured) noexcept : coloured_(coloured) {}
  // For standard output, by isatty, NO_COLOR and TERM.
  [[nodiscard]] static Style for_stdout();

  [[nodiscard]] std::string good(std::string_view text) const { return wrap("\033[32m", text); }
  [[nodiscard]] std::string bad(std::string_view text) const { return wrap("\033[1;31m", text); }

 private:
  [[nodiscard]] std::string wrap(std::string_view begin, std::string_view text) const {
    std::string result(coloured_ ? begin : "");
    result += text;
    result += coloured_ ? "\033[0m" : "";
    return result;
  }
  bool coloured_;
};

}  // namespace heaptape::analyzers
