#include "analyzers/report_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "analyzers/command_support.h"
#include "analyzers/render/html/report_page.h"
#include "analyzers/stats.h"
#include "format/base/units.h"

namespace heaptape::analyzers {

using format::CommandContext;
using format::ExitCode;
using format::Failure;
using format::Result;
using format::TapeReader;

namespace {

struct ReportOptions {
  std::string tape;
  std::string replay;
  std::string output;
};

// Written beside its place and moved there when whole: a full disk leaves no half page, and the page
// of an earlier run stays.
Result<void> write_page(const std::string& path, const std::string& page) {
  const std::string unfinished = path + ".part";
  std::FILE* file = std::fopen(unfinished.c_str(), "wbe");
  if (file == nullptr) {
    return format::system_failure(fmt::format("cannot write '{}'", path), errno);
  }
  const bool written = std::fwrite(page.data(), 1, page.size(), file) == page.size();
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) {
    const int reason = written ? errno : error;
    std::remove(unfinished.c_str());
    return format::system_failure(fmt::format("cannot write '{}'", path), reason);
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    std::remove(unfinished.c_str());
    return format::system_failure(fmt::format("cannot write '{}'", path), reason);
  }
  return {};
}

Result<ExitCode> run_report(const ReportOptions& options, bool quiet) {
  std::optional<replayer::ReplayResult> replay;
  if (!options.replay.empty()) {
    auto loaded = replayer::load_replay_result(options.replay);
    if (!loaded) {
      return Failure(std::move(loaded).error());
    }
    replay = *std::move(loaded);
  }
  const auto reader = TapeReader::open(options.tape);
  if (!reader) {
    return Failure(reader.error());
  }
  const auto stats = std::make_unique<StatsAnalysis>();
  HEAPTAPE_TRY(analyse(*reader, "report", quiet, {stats.get()}));
  const std::string page = report_page({.tape = options.tape,
                                        .info = reader->info(),
                                        .stats = stats->result(),
                                        .replay = replay ? &*replay : nullptr});
  if (options.output == "-") {
    return print(page, ExitCode::fine);
  }
  HEAPTAPE_TRY(write_page(options.output, page));
  if (!quiet) {
    fmt::print(stderr, "report: {} ({}); open it in a browser\n", options.output,
               format::format_size(page.size()));
  }
  return ExitCode::fine;
}

}  // namespace

void add_report_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand("report", "Write one HTML page about a tape and its replay");
  const auto options = std::make_shared<ReportOptions>();
  add_tape_option(*verb, options->tape);
  verb->add_option("--replay", options->replay,
                   "Result of 'heaptape replay', as JSON, to show beside the tape");
  verb->add_option("-o,--output", options->output, "The page to write; - is standard output")->required();
  verb->footer(
      "The page needs no network and no other file.\n\n"
      "Examples:\n"
      "  heaptape report app.tape -o app.html\n"
      "  heaptape replay app.tape -a glibc -a jemalloc -o result.json\n"
      "  heaptape report app.tape --replay result.json -o app.html");
  format::on_run(*verb, context, [options, &context] { return run_report(*options, context.quiet); });
}

}  // namespace heaptape::analyzers
