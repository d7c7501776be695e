// `heaptape completion bash`: a completion script made from the command line's own description.
#pragma once

#include <string>

#include "format/base/command.h"

namespace heaptape::cli {

// Completes verbs, their long options, options' fixed sets of values, and file names.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

void add_completion_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::cli
