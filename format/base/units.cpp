#include "format/base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace heaptape::format {
namespace {

struct Number {
  double value;
  std::string suffix;  // lower case, blanks removed
};

Result<Number> split(std::string_view text, std::string_view what, std::string_view example) {
  const char* first = text.data();
  const char* last = first + text.size();
  double value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc{} || value < 0 || !std::isfinite(value)) {
    return failure(ExitCode::usage, "'{}' is not a {}; write for example {}", text, what, example);
  }
  std::string suffix;
  for (const char* p = end; p != last; ++p) {
    if (*p != ' ') {
      suffix.push_back(static_cast<char>(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p));
    }
  }
  return Number{value, std::move(suffix)};
}

}  // namespace

Result<std::uint64_t> parse_size_bytes(std::string_view text) {
  constexpr std::string_view example = "4096, 64K or 1.5GiB";
  auto number = split(text, "size", example);
  if (!number) {
    return Failure(number.error());
  }
  constexpr std::array<std::string_view, 5> letters = {"", "k", "m", "g", "t"};
  std::string s = number->suffix;
  if (s.ends_with("ib")) {
    s.resize(s.size() - 2);
  } else if (s.ends_with("b")) {
    s.resize(s.size() - 1);
  }
  const auto* const at = std::find(letters.begin(), letters.end(), s);
  if (at == letters.end()) {
    return failure(ExitCode::usage, "'{}' is not a size; write for example {}", text, example);
  }
  const double bytes = number->value * std::pow(1024.0, static_cast<double>(at - letters.begin()));
  if (bytes >= 9.2e18) {
    return failure(ExitCode::usage, "'{}' is too large for a size", text);
  }
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  constexpr std::string_view example = "250ms, 90s or 5m";
  auto number = split(text, "duration", example);
  if (!number) {
    return Failure(number.error());
  }
  struct Unit {
    std::string_view name;
    double ns;
  };
  constexpr std::array<Unit, 9> units = {{{"", 1e9},
                                          {"s", 1e9},
                                          {"sec", 1e9},
                                          {"ms", 1e6},
                                          {"us", 1e3},
                                          {"ns", 1},
                                          {"m", 60e9},
                                          {"min", 60e9},
                                          {"h", 3600e9}}};
  const auto* const at =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == number->suffix; });
  if (at == units.end()) {
    return failure(ExitCode::usage, "'{}' is not a duration; write for example {}", text, example);
  }
  const double ns = number->value * at->ns;
  if (ns >= 9.2e18) {
    return failure(ExitCode::usage, "'{}' is too long for a duration", text);
  }
  return std::chrono::nanoseconds(std::llround(ns));
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < names.size()) {
    value /= 1024.0;
    ++unit;
  }
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, names[unit]);
}

std::string format_duration(std::chrono::nanoseconds time) {
  const double ns = static_cast<double>(time.count());
  const double size = std::abs(ns);
  if (size < 1e3) {
    return fmt::format("{:.0f} ns", ns);
  }
  if (size < 1e6) {
    return fmt::format("{:.3g} us", ns / 1e3);
  }
  if (size < 1e9) {
    return fmt::format("{:.3g} ms", ns / 1e6);
  }
  if (size < 120e9) {
    return fmt::format("{:.3g} s", ns / 1e9);
  }
  return fmt::format("{:.1f} min", ns / 60e9);
}

std::string format_count(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace heaptape::format
