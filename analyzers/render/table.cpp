#include "analyzers/render/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "format/base/units.h"

namespace heaptape::analyzers {

std::size_t display_width(std::string_view utf8) noexcept {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0U;
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F: controls, too
      result.push_back('?');
      ++at;
    } else {
      result.push_back(byte < 0x20 || byte == 0x7F ? '?' : text[at]);
    }
  }
  return result;
}

std::string bar(double share, std::size_t width) {
  if (!(share > 0)) {
    return {};
  }
  const double cells = std::round(std::min(share, 1.0) * static_cast<double>(width));
  return std::string(std::max<std::size_t>(1, static_cast<std::size_t>(cells)), '#');
}

std::string size_range(std::uint64_t low, std::uint64_t high) {
  if (low == high) {
    return format::format_count(low);
  }
  if (high < 1024) {
    return fmt::format("{} to {}", low, high);
  }
  if (std::has_single_bit(low) && high == low + (low - 1)) {
    constexpr std::array<std::string_view, 7> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const auto bits = static_cast<std::size_t>(std::countr_zero(low));
    const auto name = [&](std::size_t log2) {
      return fmt::format("{} {}", 1U << (log2 % 10), units[log2 / 10]);
    };
    return bits == 63 ? name(63) + " and more" : name(bits) + " to < " + name(bits + 1);
  }
  return format::format_size(low) + " to " + format::format_size(high);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? std::string()
                    : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void TextTable::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  std::transform(cells.begin(), cells.end(), cells.begin(),
                 [](const std::string& cell) { return printable(cell); });
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  bool titled = false;
  for (const Column& column : columns_) {
    widths.push_back(display_width(column.title));
    titled = titled || !column.title.empty();
  }
  for (const auto& cells : rows_) {
    for (std::size_t at = 0; at < cells.size(); ++at) {
      widths[at] = std::max(widths[at], display_width(cells[at]));
    }
  }
  std::string out;
  const auto line = [&](const auto& cell_at) {
    std::string text = indent_;
    for (std::size_t at = 0; at < columns_.size(); ++at) {
      const std::string& cell = cell_at(at);
      const std::string fill(widths[at] - display_width(cell), ' ');
      text += at == 0 ? "" : "  ";
      text += columns_[at].align == Align::right ? fill + cell : cell + fill;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  if (titled) {
    line([&](std::size_t at) -> const std::string& { return columns_[at].title; });
  }
  for (const auto& cells : rows_) {
    line([&](std::size_t at) -> const std::string& { return cells[at]; });
  }
  return out;
}

}  // namespace heaptape::analyzers
