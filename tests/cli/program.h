// Runs the built `heaptape` and catches what it says.
#pragma once

#include <string>
#include <vector>

namespace heaptape::cli::testing {

struct Outcome {
  int exit_code = -1;  // 128 + n: killed by signal n
  std::string out;
  std::string err;
};

// `heaptape ARGS...`, standard input empty.
[[nodiscard]] Outcome heaptape(std::vector<std::string> arguments);
// A command line of bash with `$heaptape` set to the program.
[[nodiscard]] Outcome bash(const std::string& script);
// Names of all verbs, from the completion script.
[[nodiscard]] std::vector<std::string> verbs();

}  // namespace heaptape::cli::testing
