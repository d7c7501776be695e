#include "replayer/measure/version.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace heaptape::replayer {
namespace {

// libtbbmalloc_proxy.so.2.8 (behind its links) -> 2.8; .../clang/14.0.6/lib/... -> clang 14.0.6.
std::string version_of_file(const std::filesystem::path& library) {
  std::error_code error;
  const auto real = std::filesystem::canonical(library, error);
  const std::string name = real.filename().native();
  if (const std::size_t so = name.find(".so."); so != std::string::npos) {
    return name.substr(so + 4);
  }
  for (auto part = real.begin(); part != real.end(); ++part) {
    if (*part == "clang" && std::next(part) != real.end()) {
      return "clang " + std::next(part)->native();
    }
  }
  return {};
}

// mimalloc tells one number: 209 is 2.0.9; newer ones have two digits for each place.
std::string dotted(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return std::string(digits);
  }
  return number < 1000 ? fmt::format("{}.{}.{}", number / 100, number / 10 % 10, number % 10)
                       : fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace

std::string version_of(const Candidate& candidate, std::string_view told) {
  const std::size_t blank = std::min(told.find(' '), told.size());
  const std::string_view name = told.substr(0, blank);
  std::string_view version = told.substr(std::min(blank + 1, told.size()));
  // Behind a preloaded allocator that is silent stands the C library, which is not.
  const bool is_other = name == "glibc" && candidate.access != Access::process;
  if (version.empty() || is_other) {
    return candidate.library.empty() ? std::string() : version_of_file(candidate.library);
  }
  if (name == "mimalloc") {
    return dotted(version);
  }
  // 5.3.0-0-g54eaed1d...: the rest names a commit.
  return std::string(version.substr(0, version.find("-0-g")));
}

}  // namespace heaptape::replayer
