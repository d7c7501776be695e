#include "analyzers/check_command.h"

#include <memory>

#include "analyzers/check.h"
#include "analyzers/command_support.h"
#include "analyzers/render/check_text.h"

namespace heaptape::analyzers {

using format::CommandContext;
using format::ExitCode;
using format::Failure;
using format::Result;
using format::TapeReader;

namespace {

struct CheckOptions {
  std::string tape;
  bool json = false;
};

class KeepReport final : public Analysis {
 public:
  void consume(std::span<const format::Event> /*events*/) override {}
  void finish(const format::MergeReport& merged) override { merged_ = merged; }
  [[nodiscard]] const format::MergeReport& result() const noexcept { return merged_; }

 private:
  format::MergeReport merged_;
};

Result<ExitCode> run_check(const CheckOptions& options, bool quiet) {
  const auto reader = TapeReader::open(options.tape);
  if (!reader) {
    return Failure(reader.error());
  }
  KeepReport report;
  HEAPTAPE_TRY(analyse(*reader, "check", quiet, {&report}));
  const Verdict verdict = judge(report.result(), reader->info());
  return print(options.json
                   ? dump(check_json(options.tape, verdict, report.result(), reader->info()))
                   : check_text(options.tape, verdict, report.result(), reader->info(), Style::for_stdout()),
               verdict.sound ? ExitCode::fine : ExitCode::no);
}

}  // namespace

void add_check_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand("check", "Read a whole tape and say whether it is sound");
  const auto options = std::make_shared<CheckOptions>();
  add_tape_option(*verb, options->tape);
  add_json_flag(*verb, options->json);
  verb->footer(
      "Exit codes: 0 sound, 1 unsound (damaged, incomplete or contradictory), 3 not readable at all.\n\n"
      "Examples:\n"
      "  heaptape check app.tape\n"
      "  heaptape check app.tape --json | jq .faults");
  format::on_run(*verb, context, [options, &context] { return run_check(*options, context.quiet); });
}

}  // namespace heaptape::analyzers
