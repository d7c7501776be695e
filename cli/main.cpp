// The `heaptape` program: one subcommand per verb, errors mapped to exit codes in one place.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/check_command.h"
#include "analyzers/info_command.h"
#include "analyzers/print_command.h"
#include "analyzers/report_command.h"
#include "analyzers/stats_command.h"
#include "cli/completion_command.h"
#include "cli/suggest.h"
#include "format/base/command.h"
#include "format/pack_command.h"
#include "recorder/collector/record_command.h"
#include "replayer/measure/replay_command.h"

namespace {

using heaptape::format::CommandContext;
using heaptape::format::ExitCode;

using AddVerb = void (*)(CLI::App&, CommandContext&);
struct VerbGroup {
  const char* title;
  std::vector<AddVerb> verbs;
};

// Every verb of the program, in the order of the help.
const VerbGroup verb_groups[] = {
    {"Record", {heaptape::collector::add_record_command}},
    {"What is on a tape",
     {heaptape::analyzers::add_info_command, heaptape::analyzers::add_check_command,
      heaptape::analyzers::add_stats_command, heaptape::analyzers::add_print_command,
      heaptape::format::add_pack_command}},
    {"Replay", {heaptape::replayer::add_replay_command}},
    {"Report", {heaptape::analyzers::add_report_command}},
    {"Other", {heaptape::cli::add_completion_command}},
};

void add_verbs(CLI::App& app, CommandContext& context) {
  for (const VerbGroup& group : verb_groups) {
    for (const AddVerb add : group.verbs) {
      add(app, context);
      app.get_subcommands({}).back()->group(group.title);
    }
  }
}

int usage_error(std::string_view where, std::string_view what) {
  // CLI11 may explain in several lines; an error is one.
  std::string line(what.substr(0, what.find_last_not_of("\n ") + 1));
  for (char& c : line) {
    c = c == '\n' ? ' ' : c;
  }
  fmt::print(stderr, "{}: {} (see {} --help)\n", where, line, where);
  return static_cast<int>(ExitCode::usage);
}

// `heaptape` alone and mistyped verbs; CLI11's own words for these help nobody. -1: neither.
int check_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "{}", app.help());
    return static_cast<int>(ExitCode::usage);
  }
  const std::string word = argv[1];
  if (word.starts_with('-')) {
    return -1;
  }
  std::vector<std::string> known;
  for (const CLI::App* verb : app.get_subcommands({})) {
    known.push_back(verb->get_name());
    if (known.back() == word) {
      return -1;
    }
  }
  const std::string meant = heaptape::cli::nearest(word, known);
  return usage_error("heaptape", meant.empty()
                                     ? fmt::format("there is no verb '{}'", word)
                                     : fmt::format("there is no verb '{}'; did you mean '{}'?", word, meant));
}

int run(const CommandContext& context) {
  const auto result = context.run();
  if (!result) {
    std::fflush(stdout);
    fmt::print(stderr, "heaptape: {}\n", result.error().message());
    return static_cast<int>(result.error().code());
  }
  // A full disk behind standard output must not pass for success; a reader that left early may.
  errno = 0;
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && errno != EPIPE) {
    fmt::print(stderr, "heaptape: standard output could not be written: is the disk full?\n");
    return static_cast<int>(ExitCode::system);
  }
  return static_cast<int>(*result);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Records the malloc/free stream of real programs, replays it against allocators, reports.",
               "heaptape");
  CommandContext context;
  app.require_subcommand(1);
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.get_formatter()->column_width(32);
  app.set_version_flag("--version", "heaptape " HEAPTAPE_VERSION, "Print the version");
  app.footer(
      "Examples:\n"
      "  heaptape record -o app.tape -- ./app --its-options\n"
      "  heaptape stats app.tape\n"
      "  heaptape replay app.tape -a glibc -a mimalloc -a jemalloc -o result.json\n"
      "  heaptape report app.tape --replay result.json -o app.html\n\n"
      "'heaptape VERB --help' explains a verb and shows examples.\n"
      "Exit codes: 0 fine, 1 the answer is no, 2 wrong usage, 3 bad tape, 4 the system refused.");
  add_verbs(app, context);
  if (const int code = check_verb(app, argc, argv); code >= 0) {
    return code;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return app.exit(error);  // --help, --version
    }
    const auto chosen = app.get_subcommands();
    return usage_error(chosen.empty() ? "heaptape" : "heaptape " + chosen.front()->get_name(), error.what());
  }
  if (!context.run) {
    return usage_error("heaptape", "a verb is missing");
  }
  try {
    return run(context);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "heaptape: out of memory; close other programs or use a machine with more\n");
    return static_cast<int>(ExitCode::system);
  }
}
