#include "analyzers/stats_command.h"

#include <memory>

#include "analyzers/command_support.h"
#include "analyzers/render/stats_text.h"
#include "analyzers/stats.h"

namespace heaptape::analyzers {

using format::CommandContext;
using format::ExitCode;
using format::Failure;
using format::Result;
using format::TapeReader;

namespace {

struct StatsOptions {
  std::string tape;
  bool json = false;
  StatsTextOptions text;
};

Result<ExitCode> run_stats(const StatsOptions& options, bool quiet) {
  const auto reader = TapeReader::open(options.tape);
  if (!reader) {
    return Failure(reader.error());
  }
  const auto stats = std::make_unique<StatsAnalysis>();  // histograms: too large for the stack
  HEAPTAPE_TRY(analyse(*reader, "stats", quiet, {stats.get()}));
  const Stats result = stats->result();
  return print(options.json ? dump(stats_json(options.tape, result, reader->info()))
                            : stats_text(options.tape, result, reader->info(), options.text),
               ExitCode::fine);
}

}  // namespace

void add_stats_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand("stats", "Count what a program asked of its allocator");
  const auto options = std::make_shared<StatsOptions>();
  add_tape_option(*verb, options->tape);
  add_json_flag(*verb, options->json);
  verb->add_option("--top", options->text.top, "Rows of the tables of sizes and threads")
      ->capture_default_str();
  verb->footer(
      "Examples:\n"
      "  heaptape stats app.tape\n"
      "  heaptape stats app.tape --top 20\n"
      "  heaptape stats app.tape --json | jq '.peak_live_bytes, .failed_calls'");
  format::on_run(*verb, context, [options, &context] { return run_stats(*options, context.quiet); });
}

}  // namespace heaptape::analyzers
