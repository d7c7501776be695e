// What a replay found: the numbers behind the table, the JSON (docs/replay-json.md) and the report.
//
// Plain data. `to_json` and `result_from_json` are inverse; reading takes any JSON and returns an
// error (bad_tape) that names the field, never throws.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "format/base/error.h"
#include "replayer/measure/fragmentation.h"
#include "replayer/measure/statistics.h"

namespace heaptape::replayer {

inline constexpr const char* replay_schema = "heaptape.replay/1";

// The tape and the plan: the same for every candidate.
struct ReplayedTape {
  std::string path;
  std::string program;
  std::uint64_t events = 0;  // on the tape
  std::uint64_t calls = 0;   // replayed
  std::uint32_t threads = 0;
  std::uint64_t skipped_failed = 0;
  std::uint64_t skipped_unknown = 0;
  std::uint64_t freeing_reallocs = 0;
  std::uint64_t requested_peak_bytes = 0;
  std::uint64_t peak_live_objects = 0;
  friend bool operator==(const ReplayedTape&, const ReplayedTape&) = default;
};

struct TimeResult {
  Estimate ns_per_event;             // gross
  Estimate net_ns_per_event;         // less `null` in the same round
  std::vector<double> rounds;        // gross, in order
  std::vector<double> net_rounds;    // net, in order
  double cpu_ns_per_event = 0.0;     // all threads; median, gross
  std::uint64_t page_faults = 0;     // median
  std::uint64_t waits = 0;           // median: waits that blocked (deps), baton passes that did (total)
  double waited_ns_per_event = 0.0;  // median, summed over threads
  std::uint64_t handovers = 0;       // total
  std::string order_digest;          // hex; empty where runs differ (possible in deps only)
  friend bool operator==(const TimeResult&, const TimeResult&) = default;
};

struct SpaceResult {
  std::uint64_t requested_peak_bytes = 0;
  std::uint64_t peak_resident_bytes = 0;
  std::string peak_resident_method;  // "smaps", "pagemap_scan", "mincore"
  std::uint64_t final_resident_bytes = 0;
  std::uint64_t after_purge_resident_bytes = 0;
  bool purged = false;  // the allocator has a purge call
  std::uint64_t fixed_resident_bytes = 0;
  Fragmentation resident;            // measures on resident bytes
  Fragmentation live_pages;          // on pages that hold a live block
  double page_occupancy = 0.0;       // L / P4 where L is largest
  double huge_page_occupancy = 0.0;  // L / P2M there
  bool has_usable_size = false;
  bool randomised = false;   // addresses were, against our wish
  std::string curve_method;  // of the readings that are not exact
  std::string order_digest;
  std::string placement_digest;  // empty: the order gives none
  std::vector<CurvePoint> curve;
  friend bool operator==(const SpaceResult&, const SpaceResult&) = default;
};

struct CandidateResult {
  std::string allocator;  // label
  std::string version;
  std::string library;
  std::string failure;      // not empty: what went wrong; then there are no numbers
  std::string order;        // of the time runs
  std::string space_order;  // of the space runs
  std::string touch;
  std::string huge_pages;
  std::uint32_t runs = 0;  // timed; the warm-up is not counted
  std::uint64_t failed_allocations = 0;
  std::uint64_t misaligned = 0;
  TimeResult time;
  SpaceResult space;
  // True where it did all that the tape asked for, so that its numbers may be compared.
  [[nodiscard]] bool is_comparable() const noexcept { return failure.empty() && failed_allocations == 0; }
  friend bool operator==(const CandidateResult&, const CandidateResult&) = default;
};

// One candidate against the baseline.
struct Verdict {
  std::string allocator;
  std::string against;
  std::optional<Estimate> speed;  // how many times as fast; none: cannot be told
  bool significant = false;
  std::string text;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

struct ReplayResult {
  std::string heaptape_version;
  std::string cpu_model;
  ReplayedTape tape;
  std::string baseline;
  Estimate null_ns_per_event;  // the harness itself
  std::vector<CandidateResult> results;
  std::vector<Verdict> verdicts;
  friend bool operator==(const ReplayResult&, const ReplayResult&) = default;
};

[[nodiscard]] nlohmann::ordered_json to_json(const ReplayResult& result);
[[nodiscard]] format::Result<ReplayResult> result_from_json(const nlohmann::ordered_json& json);
// From a file that `heaptape replay --json -o FILE` wrote.
[[nodiscard]] format::Result<ReplayResult> load_replay_result(const std::filesystem::path& path);

}  // namespace heaptape::replayer
