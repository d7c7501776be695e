// Error values: every function outside the preload and the rings returns Result<T>.
//
// Guarantees: an Error names what went wrong, where, and what to do, in one line; its kind decides
// the exit code of `heaptape`. Throwing libraries are caught in the one file that wraps them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace heaptape::format {

// The exit codes of `heaptape`, also the classes of errors.
enum class ExitCode : int {
  fine = 0,      // the question's answer is "yes"
  no = 1,        // the question's answer is "no": gate failed, tape unsound
  usage = 2,     // wrong usage
  bad_tape = 3,  // bad or unreadable tape
  system = 4,    // the operating system refused something
};

class Error {
 public:
  Error(ExitCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] ExitCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

  // The same error with "context: " in front, added on the way up.
  [[nodiscard]] Error within(std::string_view context) && {
    return {code_, fmt::format("{}: {}", context, message_)};
  }

 private:
  ExitCode code_;
  std::string message_;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Failure = tl::unexpected<Error>;

template <typename... Args>
[[nodiscard]] Failure failure(ExitCode code, fmt::format_string<Args...> text, Args&&... args) {
  return Failure(Error(code, fmt::format(text, std::forward<Args>(args)...)));
}

// `what: strerror(error_number)` as a system error.
[[nodiscard]] inline Failure system_failure(std::string_view what, int error_number) {
  return failure(ExitCode::system, "{}: {}", what, std::generic_category().message(error_number));
}

}  // namespace heaptape::format

// Returns the error of a Result<...> expression to the caller; yields nothing otherwise.
// For a value: `auto x = f(); if (!x) return Failure(x.error());` stays readable without a macro.
#define HEAPTAPE_TRY(expression)                                              \
  do {                                                                        \
    if (auto heaptape_result = (expression); !heaptape_result) {              \
      return ::heaptape::format::Failure(std::move(heaptape_result).error()); \
    }                                                                         \
  } while (false)
