#include "format/pack_command.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "format/base/progress.h"
#include "format/base/units.h"
#include "format/pack.h"

namespace heaptape::format {
namespace {

struct PackArguments {
  std::string tape;
  std::string output;  // empty: beside the tape
  bool keep_addresses = false;
  bool json = false;
};

// app.tape -> app.packed.tape
std::filesystem::path default_output(const std::filesystem::path& tape) {
  std::filesystem::path output = tape;
  if (output.extension() == ".tape") {
    output.replace_extension();
  }
  output += ".packed.tape";
  return output;
}

double per_event(std::uint64_t bytes, std::uint64_t events) {
  return events == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(events);
}

std::string as_json(const PackArguments& arguments, const std::string& output, const PackSummary& summary) {
  nlohmann::ordered_json json;
  json["schema"] = "heaptape.pack/1";
  json["tape"] = arguments.tape;
  json["output"] = output;
  json["events"] = summary.events;
  json["source_bytes"] = summary.source_bytes;
  json["packed_bytes"] = summary.packed_bytes;
  json["bytes_per_event"] = per_event(summary.packed_bytes, summary.events);
  json["keeps_addresses"] = summary.keeps_addresses;
  json["contradictions"] = summary.merged.contradictions;
  json["repairs"] = summary.merged.repairs;
  json["lost_events"] = summary.merged.lost_events;
  // Paths are bytes: what is no UTF-8 is replaced.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string as_text(const std::string& output, const PackSummary& summary) {
  return fmt::format("{}: {} events, {} (was {}), {:.2f} bytes per event, {} addresses\n", output,
                     format_count(summary.events), format_size(summary.packed_bytes),
                     format_size(summary.source_bytes), per_event(summary.packed_bytes, summary.events),
                     summary.keeps_addresses ? "with" : "without");
}

Result<ExitCode> run_pack(const PackArguments& arguments, bool quiet) {
  const std::filesystem::path output =
      arguments.output.empty() ? default_output(arguments.tape) : std::filesystem::path(arguments.output);
  std::error_code unknown;
  if (std::filesystem::equivalent(arguments.tape, output, unknown)) {
    return failure(ExitCode::usage, "'{}' would replace itself; name another file with -o", arguments.tape);
  }
  const auto source = TapeReader::open(arguments.tape);
  if (!source) {
    return Failure(source.error());
  }
  if (arguments.keep_addresses && !source->info().header.keeps_addresses) {
    return failure(ExitCode::usage, "'{}' has no addresses to keep; pack it without --keep-addresses",
                   arguments.tape);
  }
  Progress progress(!quiet, "packing");
  PackOptions options;
  options.keep_addresses = arguments.keep_addresses;
  options.progress = [&progress](double share) { progress.update(share); };
  const auto summary = pack_tape(*source, output, options);
  if (!summary) {
    return Failure(summary.error());
  }
  const std::string text =
      arguments.json ? as_json(arguments, output.string(), *summary) : as_text(output.string(), *summary);
  // The tape is there by now; a reader of this line that has gone is no failure.
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno != EPIPE) {
      return system_failure("cannot write to standard output", errno);
    }
  }
  return ExitCode::fine;
}

}  // namespace

void add_pack_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand(
      "pack",
      "Rewrite a tape in one merged order, with objects instead of addresses: small and safe to share");
  const auto arguments = std::make_shared<PackArguments>();
  verb->add_option("tape", arguments->tape, "The tape to pack")->required()->type_name("TAPE");
  verb->add_option("-o,--output", arguments->output, "Where to (default: TAPE with .packed.tape)")
      ->type_name("FILE");
  verb->add_flag("--keep-addresses", arguments->keep_addresses,
                 "Keep addresses, for the reports that need them");
  verb->add_flag("--json", arguments->json, "Say what was done as JSON");
  verb->footer(
      "Examples:\n"
      "  heaptape pack app.tape                      writes app.packed.tape\n"
      "  heaptape pack app.tape -o /share/app.tape --keep-addresses");
  on_run(*verb, context, [arguments, &context] { return run_pack(*arguments, context.quiet); });
}

}  // namespace heaptape::format
