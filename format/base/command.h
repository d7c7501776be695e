// How a verb of `heaptape` plugs into the command line: one registration function per verb.
//
// Each verb lives in the folder that does its work, as `foo_command.{h,cpp}` with one function
// `void add_foo_command(CLI::App& app, CommandContext& context)`, and cli/main.cpp calls them all.
// It fills a subcommand (description, options, footer with examples) and hands the work to
// `on_run`. CLI11 throws on wrong usage; cli/main.cpp is the one place that catches it.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <utility>

#include "format/base/error.h"

namespace heaptape::format {

struct CommandContext {
  bool quiet = false;                     // -q: no progress, no notes
  std::function<Result<ExitCode>()> run;  // set by the verb that was chosen
};

inline void on_run(CLI::App& subcommand, CommandContext& context, std::function<Result<ExitCode>()> work) {
  subcommand.add_flag("-q,--quiet", context.quiet, "No progress and no notes on stderr");
  subcommand.callback([&context, work = std::move(work)] { context.run = work; });
}

}  // namespace heaptape::format
