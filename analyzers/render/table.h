// A plain-text table: columns as wide as their widest cell, numbers to the right.
//
// Cells are UTF-8; a code point counts as one column. Control characters in cells (names come from
// recorded programs) are shown as '?', so that a tape cannot steer a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heaptape::analyzers {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::right;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns, std::string indent = "  ")
      : columns_(std::move(columns)), indent_(std::move(indent)) {}
  void row(std::vector<std::string> cells);  // missing cells are empty
  // Title line (when any column has a title) and rows, each ended by a newline, no trailing blanks.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

 private:
  std::vector<Column> columns_;
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] std::size_t display_width(std::string_view utf8) noexcept;
// Control characters become '?'.
[[nodiscard]] std::string printable(std::string_view text);
// `share` (0 to 1) as a bar of at most `width` characters; something above nothing shows at least one.
[[nodiscard]] std::string bar(double share, std::size_t width);
// Sizes low to high, both included: "16 to 31", "1 KiB to < 2 KiB", "17.0 KiB to 17.5 KiB".
[[nodiscard]] std::string size_range(std::uint64_t low, std::uint64_t high);
// "12.3 %"; of nothing: "".
[[nodiscard]] std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace heaptape::analyzers
