#include "analyzers/print_command.h"

#include <limits>
#include <memory>
#include <optional>

#include "analyzers/command_support.h"
#include "analyzers/render/event_line.h"

namespace heaptape::analyzers {

using format::CommandContext;
using format::Event;
using format::ExitCode;
using format::Failure;
using format::Result;
using format::TapeReader;

namespace {

struct PrintOptions {
  std::string tape;
  bool json = false;
  std::uint64_t from = 0;
  std::uint64_t to = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::uint32_t> thread;
};

// No analysis: it stops early, at --to, at --limit, or when the reader of its output has gone.
Result<ExitCode> run_print(const PrintOptions& options) {
  const auto reader = TapeReader::open(options.tape);
  if (!reader) {
    return Failure(reader.error());
  }
  auto cursor = reader->events();
  if (!cursor) {
    return Failure(cursor.error());
  }
  StandardOutput out;
  std::string line;
  std::uint64_t printed = 0;
  while (!out.gone()) {
    const auto events = (*cursor)->next();
    if (!events) {
      HEAPTAPE_TRY(out.flush());  // what was readable
      return Failure(events.error());
    }
    if (events->empty()) {
      break;
    }
    for (const Event& e : *events) {
      if (e.index >= options.to || printed >= options.limit || out.gone()) {
        HEAPTAPE_TRY(out.flush());
        return ExitCode::fine;
      }
      if (e.index < options.from ||
          (options.thread && static_cast<std::uint32_t>(e.thread) != *options.thread)) {
        continue;
      }
      line.clear();
      options.json ? append_event_json(line, e) : append_event_text(line, e);
      HEAPTAPE_TRY(out.write(line));
      ++printed;
    }
  }
  HEAPTAPE_TRY(out.flush());
  return ExitCode::fine;
}

}  // namespace

void add_print_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand("print", "Print the events of a tape, one a line, in the merged order");
  const auto options = std::make_shared<PrintOptions>();
  add_tape_option(*verb, options->tape);
  verb->add_flag("--json", options->json, "Print one JSON object a line");
  verb->add_option("--from", options->from, "First event to print, by index (from 0)");
  verb->add_option("--to", options->to, "Stop before this event, by index");
  verb->add_option("--thread", options->thread, "Only events of this thread, by index");
  verb->add_option("--limit", options->limit, "Stop after so many lines");
  verb->footer(
      "A line holds: index, seconds, thread, call(arguments) = result, bytes released, facts.\n"
      "#7 is the seventh block that was born; a realloc makes a new one.\n\n"
      "Examples:\n"
      "  heaptape print app.tape | head\n"
      "  heaptape print app.tape --from 1000 --to 1010\n"
      "  heaptape print app.tape --thread 2 --json | jq -r .kind | sort | uniq -c");
  format::on_run(*verb, context, [options] { return run_print(*options); });
}

}  // namespace heaptape::analyzers
