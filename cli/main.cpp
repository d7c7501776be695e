// The `heaptape` program: one subcommand per verb, errors mapped to exit codes in one place.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>

#include "format/base/command.h"

namespace {

using heaptape::format::CommandContext;
using heaptape::format::ExitCode;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Records the malloc/free stream of real programs, replays it against allocators, reports.",
               "heaptape");
  CommandContext context;
  app.require_subcommand(1);
  app.set_version_flag("--version", "heaptape 0.1.0");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  if (!context.run) {
    return static_cast<int>(ExitCode::usage);
  }
  const auto result = context.run();
  if (!result) {
    fmt::print(stderr, "heaptape: {}\n", result.error().message());
    return static_cast<int>(result.error().code());
  }
  return static_cast<int>(*result);
}
