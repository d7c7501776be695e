#include "recorder/collector/record_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "recorder/collector/collector.h"
#include "recorder/collector/options.h"
#include "recorder/collector/summary.h"

namespace heaptape::collector {

using format::ExitCode;
using format::Result;

namespace {

// The program's own status wins: a recorder must be as transparent as a shell.
ExitCode exit_code(const RecordingSummary& summary) {
  if (summary.program_ended && summary.program_status != 0) {
    return ExitCode{summary.program_status};
  }
  if (summary.any_failed) {
    return ExitCode::system;
  }
  return summary.nothing_recorded || summary.program_unrecorded ? ExitCode::no : ExitCode::fine;
}

Result<ExitCode> run_record(const RecordOptions& options) {
  const auto summary = record(options);
  if (!summary) {
    return format::Failure(summary.error());
  }
  if (!options.quiet) {
    std::fputs(to_text(*summary).c_str(), stderr);
  }
  if (!options.summary_path.empty()) {
    if (auto written = write_json(*summary, options.summary_path); !written) {
      std::fputs(fmt::format("heaptape: {}\n", written.error().message()).c_str(), stderr);
      return summary->program_status != 0 ? exit_code(*summary) : ExitCode::system;
    }
  }
  return exit_code(*summary);
}

}  // namespace

void add_record_command(CLI::App& app, format::CommandContext& context) {
  CLI::App* verb = app.add_subcommand("record", "Run a program and record its malloc/free stream as a tape");
  const auto options = std::make_shared<RecordOptions>();
  verb->add_option("-o,--output", options->output,
                   "The tape; may hold %p (process id), %e (program), %t (time); other processes that the "
                   "program starts get .PID before the extension unless %p is there")
      ->type_name("FILE")
      ->capture_default_str();
  static const std::map<std::string, format::StackMode> stack_modes = {{"none", format::StackMode::none},
                                                                       {"caller", format::StackMode::caller}};
  verb->add_option("--stacks", options->stacks,
                   "What to keep of each call's stack: none, or its caller's address")
      ->transform(CLI::CheckedTransformer(stack_modes).description(""))
      ->type_name("none|caller")
      ->default_str("none");
  static const std::map<std::string, Overflow> overflows = {{"block", Overflow::block},
                                                            {"drop", Overflow::drop}};
  verb->add_option(
          "--on-overflow", options->overflow,
          "When the recorder cannot keep up: block the program (complete tape), or drop events (counted)")
      ->transform(CLI::CheckedTransformer(overflows).description(""))
      ->type_name("block|drop")
      ->default_str("block");
  verb->add_flag("!--no-follow", options->follow, "Record the program alone, not the processes it starts");
  verb->add_option("--summary", options->summary_path, "Write what was recorded as JSON, too")
      ->type_name("FILE");
  verb->add_option("program", options->command, "The program to record and its arguments, after --")
      ->type_name("PROGRAM ARGS...")
      ->required();
  verb->footer(
      "Exit code: the program's own (128 + signal if one killed it). Where the program says 0:\n"
      "1 nothing could be recorded, 4 the recording was cut short. Nothing was started: 2 wrong\n"
      "usage or no such program, 4 the system refused.\n\n"
      "Examples:\n"
      "  heaptape record -- ./server --port 8080          heaptape.server.PID.tape\n"
      "  heaptape record -o run.tape -- python3 job.py     the usual case\n"
      "  heaptape record -o %e.%p.tape -- make -j4         one tape per process\n"
      "  heaptape record --on-overflow drop -o s.tape -- ./latency-critical");
  format::on_run(*verb, context, [options, &context] {
    options->quiet = context.quiet;
    return run_record(*options);
  });
}

}  // namespace heaptape::collector
