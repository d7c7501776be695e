#include "replayer/measure/replay_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "format/base/units.h"
#include "format/reader.h"
#include "replayer/measure/list.h"
#include "replayer/measure/names.h"
#include "replayer/measure/session.h"
#include "replayer/measure/table.h"

namespace heaptape::replayer {

using format::CommandContext;
using format::ExitCode;
using format::failure;
using format::Failure;
using format::Result;
using format::TapeReader;

namespace {

struct ReplayOptions {
  std::string tape;
  std::vector<std::string> candidates;
  std::string order;
  std::string touch = "pages";
  std::string huge_pages = "never";
  std::string arena_size;
  std::string timeout = "10m";
  std::string output;
  std::uint32_t runs = 5;
  std::string baseline;
  bool json = false;
  bool list = false;
};

// The value whose name_of is `text`; options check that there is one.
template <typename Enum>
Enum value_named(std::string_view text, std::initializer_list<Enum> values) {
  return *std::find_if(values.begin(), values.end(), [&](Enum v) { return name_of(v) == text; });
}

Result<EngineSettings> engine_settings(const ReplayOptions& options) {
  EngineSettings settings;
  settings.touch =
      value_named(options.touch, {TouchMode::none, TouchMode::first, TouchMode::pages, TouchMode::all});
  settings.huge_pages =
      value_named(options.huge_pages, {HugePages::never, HugePages::madvise, HugePages::always});
  if (!options.arena_size.empty()) {
    const auto bytes = format::parse_size_bytes(options.arena_size);
    if (!bytes) {
      return Failure(format::Error(bytes.error()).within("--arena-size"));
    }
    settings.arena_bytes = *bytes;
  }
  const auto timeout = format::parse_duration(options.timeout);
  if (!timeout) {
    return Failure(format::Error(timeout.error()).within("--timeout"));
  }
  settings.timeout = *timeout;
  auto engine = find_engine();
  if (!engine) {
    return Failure(engine.error());
  }
  settings.engine = std::move(*engine);
  return settings;
}

// The engine does not see the caller's environment: a setting made there would be lost silently.
void note_ignored_variables(bool quiet) {
  for (const char* name :
       {"GLIBC_TUNABLES", "MALLOC_CONF", "SCUDO_OPTIONS", "LD_PRELOAD", "MALLOC_ARENA_MAX"}) {
    if (!quiet && std::getenv(name) != nullptr) {
      std::fprintf(stderr, "heaptape: note: %s is not passed to the allocators; write -a NAME:KEY=VALUE\n",
                   name);
    }
  }
}

Progress terminal_progress(bool quiet) {
  if (quiet || ::isatty(STDERR_FILENO) == 0) {
    return nullptr;
  }
  return [](std::string_view what, std::size_t step, std::size_t steps) {
    std::fprintf(stderr, "\r\033[Kreplay %zu/%zu: %.*s%s", step, steps, static_cast<int>(what.size()),
                 what.data(), step == steps ? "\n" : "");
    std::fflush(stderr);
  };
}

// Of the machine that replays; the tape's may be another.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      return line.substr(std::min(line.find(':') + 2, line.size()));
    }
  }
  return {};
}

std::string json_text(const ReplayResult& result) {
  // Program names are bytes, JSON is UTF-8.
  return to_json(result).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    return failure(ExitCode::system, "{}: cannot be written", path);
  }
  return {};
}

Result<ExitCode> run_list(const ReplayOptions& options) {
  const auto settings = engine_settings(options);
  if (!settings) {
    return Failure(settings.error());
  }
  const auto list = list_candidates(*settings);
  if (!list) {
    return Failure(list.error());
  }
  const std::string text = options.json ? list_json(*list) : list_text(*list);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return ExitCode::fine;
}

// One thread needs no order; with more, time is that of threads that contend.
Order chosen_order(const ReplayOptions& options, std::size_t threads) {
  if (options.order.empty()) {
    return threads <= 1 ? Order::serial : Order::deps;
  }
  return value_named(options.order, {Order::serial, Order::total, Order::deps});
}

Result<ExitCode> run_replay(const ReplayOptions& options, bool quiet) {
  if (options.list) {
    return run_list(options);
  }
  if (options.tape.empty()) {
    return failure(ExitCode::usage, "replay: TAPE is missing; `heaptape record` makes one");
  }
  auto candidates = options.candidates.empty() ? Result<std::vector<Candidate>>(installed_candidates())
                                               : parse_candidates(options.candidates);
  if (!candidates) {
    return Failure(candidates.error());
  }
  auto engine = engine_settings(options);
  if (!engine) {
    return Failure(engine.error());
  }
  const auto tape = TapeReader::open(options.tape);
  if (!tape) {
    return Failure(tape.error());
  }
  note_ignored_variables(quiet);
  const format::TapeInfo& info = tape->info();
  if (!quiet && info.damage.any()) {
    std::fprintf(stderr, "heaptape: note: %s is damaged or cut off; what is left of it is replayed\n",
                 options.tape.c_str());
  }
  ReplaySettings settings;
  settings.order = chosen_order(options, info.threads.size());
  settings.runs = options.runs;
  settings.baseline = options.baseline;
  settings.engine = std::move(*engine);
  auto result = replay([&tape] { return tape->events(); }, *candidates, settings, terminal_progress(quiet));
  if (!result) {
    return Failure(result.error());
  }
  result->heaptape_version = HEAPTAPE_VERSION;
  result->cpu_model = cpu_model();
  result->tape.path = options.tape;
  result->tape.program = info.header.program;
  result->tape.events = info.events;
  result->tape.threads = static_cast<std::uint32_t>(info.threads.size());
  if (!options.output.empty()) {
    HEAPTAPE_TRY(write_file(options.output, json_text(*result)));
  }
  const std::string text = options.json ? json_text(*result) : replay_text(*result);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const bool any = std::any_of(result->results.begin(), result->results.end(),
                               [](const CandidateResult& c) { return c.failure.empty(); });
  return any ? ExitCode::fine : ExitCode::no;
}

}  // namespace

void add_replay_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand("replay", "Replay a tape against allocators and compare them");
  const auto o = std::make_shared<ReplayOptions>();
  verb->add_option("TAPE", o->tape, "Tape to replay");
  verb->add_option(
          "-a,--allocator", o->candidates,
          "Candidate, repeatable: NAME[=LIB[,prefix=P]][:KEY=VALUE,...]; default: all that are installed")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb->add_option(
          "--order", o->order,
          "serial: one thread; total: the recorded threads take turns in the recorded order; deps: they run "
          "freely but for the blocks they share. Default: serial for one thread, else deps for time and "
          "total for space")
      ->check(CLI::IsMember({"serial", "total", "deps"}));
  verb->add_option("--touch", o->touch,
                   "What is written to each new block: nothing, its first byte, each page, all")
      ->check(CLI::IsMember({"none", "first", "pages", "all"}))
      ->capture_default_str();
  verb->add_option("--runs", o->runs, "Timed runs of each candidate, after one to warm up")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  verb->add_option("--thp", o->huge_pages, "Transparent huge pages")
      ->check(CLI::IsMember({"never", "madvise", "always"}))
      ->capture_default_str();
  verb->add_option("--arena-size", o->arena_size,
                   "Memory lent to arena, such as 256M; default: chosen from the tape");
  verb->add_option("--baseline", o->baseline, "Candidate that the others are compared with; default: glibc");
  verb->add_option("--timeout", o->timeout, "A single run that takes longer is given up")
      ->capture_default_str();
  verb->add_flag("--list", o->list,
                 "Show the candidates: where found, version, how their numbers are obtained");
  verb->add_flag("--json", o->json, "Print JSON (docs/replay-json.md)");
  verb->add_option("-o,--output", o->output,
                   "Also write the JSON to this file, for `heaptape report --replay`");
  verb->footer(
      "Examples:\n"
      "  heaptape replay app.tape\n"
      "  heaptape replay app.tape -a glibc -a mimalloc -a jemalloc:dirty_decay_ms=0 --runs 9\n"
      "  heaptape replay app.tape -a mine=./libmine.so -a ned=./libnedmalloc.so,prefix=ned\n"
      "  heaptape replay app.tape --order total --arena-size 512M -o result.json\n"
      "  heaptape replay --list");
  format::on_run(*verb, context, [o, &context] { return run_replay(*o, context.quiet); });
}

}  // namespace heaptape::replayer
