#include "replayer/measure/list.h"

#include <nlohmann/json.hpp>

#include "format/cursor.h"
#include "replayer/measure/table.h"
#include "replayer/measure/version.h"
#include "replayer/plan/compile.h"

namespace heaptape::replayer {

using format::Failure;
using format::Result;

namespace {

// malloc and free.
Result<Plan> smallest_plan() {
  std::vector<format::Event> events(2);
  events[0].kind = format::Kind::malloc;
  events[0].size_bytes = 64;
  events[0].object = format::ObjectId{1};
  events[0].slot = format::SlotIndex{0};
  events[1].index = 1;
  events[1].kind = format::Kind::free;
  events[1].released = format::ObjectId{1};
  events[1].released_slot = format::SlotIndex{0};
  format::VectorCursor cursor(std::move(events));
  return compile_plan(cursor, {.order = Order::serial});
}

std::string how(const KnownAllocator& known, const EngineResult& result) {
  std::string text = known.access == Access::builtin   ? "built in"
                     : known.access == Access::process ? "the C library"
                                                       : "LD_PRELOAD";
  text += result.has_usable_size != 0 ? ", tells usable sizes" : ", tells no usable sizes";
  if (result.purged != 0 && !known.purge.empty()) {
    text += fmt::format(", purged by {}", known.purge);
  } else {
    text += result.purged != 0 ? ", purged" : ", no purge call";
  }
  return text;
}

}  // namespace

Result<std::vector<ListedCandidate>> list_candidates(const EngineSettings& settings) {
  const auto plan = smallest_plan();
  if (!plan) {
    return Failure(plan.error());
  }
  std::vector<ListedCandidate> list;
  for (const KnownAllocator& known : known_allocators()) {
    ListedCandidate& entry = list.emplace_back();
    entry.name = known.name;
    const auto candidate = parse_candidate(known.name);
    if (!candidate) {
      entry.package = known.package;
      continue;
    }
    entry.library = candidate->library.native();
    const auto outcome = run_engine(*plan, *candidate, RunMode::space, settings);
    if (!outcome) {
      return Failure(outcome.error());
    }
    entry.failure = outcome->failure;
    entry.version = version_of(*candidate, outcome->result.allocator_version);
    entry.how = how(known, outcome->result);
  }
  return list;
}

std::string list_text(const std::vector<ListedCandidate>& list) {
  std::vector<std::vector<std::string>> rows{
      {"name", "version", "how its numbers are obtained, and where it is"}};
  for (const ListedCandidate& c : list) {
    std::string what = c.how;
    if (!c.package.empty()) {
      what = fmt::format("not installed: apt-get install {}", c.package);
    } else if (!c.failure.empty()) {
      what = "does not run: " + c.failure;
    }
    if (!c.library.empty()) {
      what += "; " + c.library;
    }
    rows.push_back({c.name, c.version.empty() ? "-" : c.version, what});
  }
  return align_columns(rows, Align::text) +
         "Any other: NAME=LIB (a library that replaces malloc, by LD_PRELOAD) or NAME=LIB,prefix=P (its own "
         "names: "
         "Pmalloc, Pfree, ...).\n";
}

std::string list_json(const std::vector<ListedCandidate>& list) {
  nlohmann::ordered_json json = {{"schema", "heaptape.candidates/1"}};
  auto& candidates = json["candidates"] = nlohmann::ordered_json::array();
  const auto nullable = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  for (const ListedCandidate& c : list) {
    candidates.push_back({{"allocator", c.name},
                          {"installed", c.package.empty()},
                          {"library", nullable(c.library)},
                          {"version", nullable(c.version)},
                          {"package", nullable(c.package)},
                          {"how", nullable(c.how)},
                          {"failure", nullable(c.failure)}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace heaptape::replayer
