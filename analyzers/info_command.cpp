#include "analyzers/info_command.h"

#include <memory>

#include "analyzers/command_support.h"
#include "analyzers/render/tape_words.h"

namespace heaptape::analyzers {

using format::CommandContext;
using format::ExitCode;
using format::Failure;
using format::Result;
using format::TapeReader;

namespace {

struct InfoOptions {
  std::string tape;
  bool json = false;
};

Result<ExitCode> run_info(const InfoOptions& options) {
  const auto reader = TapeReader::open(options.tape);
  if (!reader) {
    return Failure(reader.error());
  }
  return print(
      options.json ? dump(info_json(options.tape, reader->info())) : info_text(options.tape, reader->info()),
      ExitCode::fine);
}

}  // namespace

void add_info_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb =
      app.add_subcommand("info", "Say what a tape holds: what ran, where, for how long, how large");
  const auto options = std::make_shared<InfoOptions>();
  add_tape_option(*verb, options->tape);
  add_json_flag(*verb, options->json);
  verb->footer(
      "Examples:\n"
      "  heaptape info app.tape\n"
      "  heaptape info app.tape --json | jq .duration_ns");
  format::on_run(*verb, context, [options] { return run_info(*options); });
}

}  // namespace heaptape::analyzers
