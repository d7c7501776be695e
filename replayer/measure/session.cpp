#include "replayer/measure/session.h"

#include <algorithm>
#include <span>
#include <utility>

#include "replayer/measure/names.h"
#include "replayer/measure/space.h"
#include "replayer/measure/verdict.h"
#include "replayer/measure/version.h"
#include "replayer/plan/compile.h"
#include "replayer/plan/verify.h"

namespace heaptape::replayer {

using format::ExitCode;
using format::failure;
using format::Failure;
using format::Result;

namespace {

Candidate null_candidate() {
  Candidate null;
  null.label = null.name = "null";
  null.access = Access::builtin;
  return null;
}

// The numbers of one candidate's time runs, round by round.
struct Rounds {
  std::vector<EngineResult> runs;
  [[nodiscard]] double ns_per_event(std::size_t round) const {
    const EngineResult& r = runs[round];
    return r.ops_executed == 0 ? 0.0
                               : static_cast<double>(r.elapsed_ns) / static_cast<double>(r.ops_executed);
  }
  // Median over the rounds of a number per event, or of a count.
  [[nodiscard]] double median(std::uint64_t EngineResult::*field, bool per_event) const {
    std::vector<double> values;
    for (const EngineResult& r : runs) {
      const auto value = static_cast<double>(r.*field);
      values.push_back(per_event && r.ops_executed != 0 ? value / static_cast<double>(r.ops_executed)
                                                        : value);
    }
    return median_of(values);
  }
};

class Session {
 public:
  Session(const std::vector<Candidate>& candidates, const ReplaySettings& settings, const Progress& progress)
      : candidates_(candidates), settings_(settings), progress_(progress), rounds_(candidates.size()) {
    for (const Candidate& c : candidates) {
      CandidateResult entry;
      entry.allocator = c.label;
      entry.library = c.library.native();
      entry.order = name_of(settings.order);
      entry.space_order = name_of(space_order());
      entry.touch = name_of(settings.engine.touch);
      entry.huge_pages = name_of(settings.engine.huge_pages);
      entry.runs = settings.runs;
      result_.results.push_back(std::move(entry));
    }
    // Compiling, space for each, and null with each in all rounds.
    steps_ = 1 + candidates.size() + (settings.runs + 1) * (candidates.size() + 1);
  }

  Result<ReplayResult> run(const OpenEvents& open);

 private:
  [[nodiscard]] Order space_order() const {
    return settings_.order == Order::serial ? Order::serial : Order::total;
  }
  Result<Plan> compile(const OpenEvents& open, Order order);
  Result<void> measure_space(Plan& plan);
  Result<void> measure_space_of(Plan& plan, std::size_t index);
  Result<EngineOutcome> run_with_exact(Plan& plan, const Candidate& candidate,
                                       std::span<const std::size_t> instants);
  Result<void> measure_time(const Plan& plan);
  Result<void> run_round(const Plan& plan, bool warm_up);
  void finish_time(std::size_t index);
  void choose_baseline();
  void step(std::string_view what) {
    if (progress_) {
      progress_(what, ++step_, steps_);
    }
  }

  const std::vector<Candidate>& candidates_;
  const ReplaySettings& settings_;
  const Progress& progress_;
  std::size_t step_ = 0;
  std::size_t steps_ = 0;
  Rounds null_;
  std::vector<Rounds> rounds_;
  ReplayResult result_;
};

Result<Plan> Session::compile(const OpenEvents& open, Order order) {
  auto events = open();
  if (!events) {
    return Failure(events.error());
  }
  auto plan = compile_plan(**events, {.order = order});
  if (plan) {
    HEAPTAPE_TRY(verify_plan(*plan));
  }
  return plan;
}

// A space run that reads exactly at these instants too. The plan is as before afterwards.
Result<EngineOutcome> Session::run_with_exact(Plan& plan, const Candidate& candidate,
                                              std::span<const std::size_t> instants) {
  std::vector<std::size_t> changed;
  for (const std::size_t i : instants) {
    if (plan.instants()[i].exact == 0) {
      plan.set_exact(i, true);
      changed.push_back(i);
    }
  }
  auto outcome = run_engine(plan, candidate, RunMode::space, settings_.engine);
  for (const std::size_t i : changed) {
    plan.set_exact(i, false);
  }
  return outcome;
}

Result<void> Session::measure_space_of(Plan& plan, std::size_t index) {
  CandidateResult& entry = result_.results[index];
  const Candidate& candidate = candidates_[index];
  auto outcome = run_engine(plan, candidate, RunMode::space, settings_.engine);
  if (!outcome) {
    return Failure(outcome.error());
  }
  if (const auto needed = exact_readings_needed(*outcome); outcome->failure.empty() && !needed.empty()) {
    outcome = run_with_exact(plan, candidate, needed);
    if (!outcome) {
      return Failure(outcome.error());
    }
  }
  entry.version = version_of(candidate, outcome->result.allocator_version);
  entry.failure = !outcome->failure.empty() ? outcome->failure : space_contradiction(plan, *outcome);
  entry.failed_allocations = outcome->result.failed_allocations;
  entry.misaligned = outcome->result.misaligned;
  entry.space = space_of(plan, *outcome);
  // Same plan, same order: whichever the allocator.
  for (const CandidateResult& other : result_.results) {
    if (entry.failure.empty() && other.failure.empty() && !other.space.order_digest.empty() &&
        other.space.order_digest != entry.space.order_digest) {
      entry.failure = fmt::format("inconsistent: executed another order than {}", other.allocator);
    }
  }
  return {};
}

Result<void> Session::measure_space(Plan& plan) {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    step(fmt::format("space of {}", candidates_[i].label));
    HEAPTAPE_TRY(measure_space_of(plan, i));
  }
  return {};
}

Result<void> Session::run_round(const Plan& plan, bool warm_up) {
  const std::string round =
      warm_up ? "warm-up" : fmt::format("round {} of {}", null_.runs.size() + 1, settings_.runs);
  step(fmt::format("time of null, {}", round));
  auto null = run_engine(plan, null_candidate(), RunMode::time, settings_.engine);
  if (!null) {
    return Failure(null.error());
  }
  if (!null->failure.empty()) {
    return failure(ExitCode::system, "replay: null, the harness itself, {}", null->failure);
  }
  if (!warm_up) {
    null_.runs.push_back(null->result);
  }
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    step(fmt::format("time of {}, {}", candidates_[i].label, round));
    CandidateResult& entry = result_.results[i];
    if (!entry.failure.empty()) {
      continue;
    }
    auto outcome = run_engine(plan, candidates_[i], RunMode::time, settings_.engine);
    if (!outcome) {
      return Failure(outcome.error());
    }
    entry.failure = outcome->failure;
    if (entry.failure.empty() && settings_.order != Order::deps &&
        outcome->result.order_digest != null->result.order_digest) {
      entry.failure = "inconsistent: executed another order than null";
    }
    entry.failed_allocations = std::max(entry.failed_allocations, outcome->result.failed_allocations);
    entry.misaligned = std::max(entry.misaligned, outcome->result.misaligned);
    if (!warm_up) {
      rounds_[i].runs.push_back(outcome->result);
    }
  }
  return {};
}

void Session::finish_time(std::size_t index) {
  TimeResult& t = result_.results[index].time;
  const Rounds& mine = rounds_[index];
  for (std::size_t r = 0; r < mine.runs.size(); ++r) {
    t.rounds.push_back(mine.ns_per_event(r));
    t.net_rounds.push_back(mine.ns_per_event(r) - null_.ns_per_event(r));
  }
  t.ns_per_event = estimate_median(t.rounds);
  t.net_ns_per_event = estimate_median(t.net_rounds);
  t.cpu_ns_per_event = mine.median(&EngineResult::cpu_ns, true);
  t.waited_ns_per_event = mine.median(&EngineResult::waited_ns, true);
  t.page_faults = static_cast<std::uint64_t>(mine.median(&EngineResult::page_faults, false));
  t.waits = static_cast<std::uint64_t>(mine.median(&EngineResult::waits, false));
  t.handovers = static_cast<std::uint64_t>(mine.median(&EngineResult::handovers, false));
  const auto same = [&](const EngineResult& r) { return r.order_digest == mine.runs.front().order_digest; };
  if (!mine.runs.empty() && std::all_of(mine.runs.begin(), mine.runs.end(), same)) {
    t.order_digest = digest_text(mine.runs.front().order_digest);
  }
}

Result<void> Session::measure_time(const Plan& plan) {
  for (std::uint32_t round = 0; round <= settings_.runs; ++round) {
    HEAPTAPE_TRY(run_round(plan, round == 0));
  }
  std::vector<double> null_rounds;
  for (std::size_t r = 0; r < null_.runs.size(); ++r) {
    null_rounds.push_back(null_.ns_per_event(r));
  }
  result_.null_ns_per_event = estimate_median(null_rounds);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (result_.results[i].failure.empty()) {
      finish_time(i);
    }
  }
  return {};
}

void Session::choose_baseline() {
  result_.baseline = settings_.baseline;
  if (result_.baseline.empty()) {
    const auto glibc = std::find_if(candidates_.begin(), candidates_.end(),
                                    [](const Candidate& c) { return c.label == "glibc"; });
    result_.baseline = glibc != candidates_.end() ? glibc->label : candidates_.front().label;
  }
}

Result<ReplayResult> Session::run(const OpenEvents& open) {
  choose_baseline();
  step("compiling the plan");
  auto plan = compile(open, space_order());
  if (!plan) {
    return Failure(plan.error());
  }
  const PlanHeader& h = plan->header();
  result_.tape.calls = plan->calls();
  result_.tape.threads = h.thread_count;
  result_.tape.skipped_failed = h.skipped_failed;
  result_.tape.skipped_unknown = h.skipped_unknown;
  result_.tape.freeing_reallocs = h.freeing_reallocs;
  result_.tape.requested_peak_bytes = h.peak_requested_bytes;
  result_.tape.peak_live_objects = h.peak_live_objects;
  HEAPTAPE_TRY(measure_space(*plan));
  if (settings_.order != space_order()) {
    // One plan in memory at a time: the first goes before the second is compiled.
    { const Plan gone = std::move(*plan); }
    plan = compile(open, settings_.order);
    if (!plan) {
      return Failure(plan.error());
    }
  }
  HEAPTAPE_TRY(measure_time(*plan));
  result_.verdicts = judge(result_);
  return std::move(result_);
}

}  // namespace

Result<ReplayResult> replay(const OpenEvents& open, const std::vector<Candidate>& candidates,
                            const ReplaySettings& settings, const Progress& progress) {
  if (candidates.empty()) {
    return failure(ExitCode::usage, "replay: no candidates; name some with -a");
  }
  const bool baseline_exists = settings.baseline.empty() ||
                               std::any_of(candidates.begin(), candidates.end(),
                                           [&](const Candidate& c) { return c.label == settings.baseline; });
  if (!baseline_exists) {
    return failure(ExitCode::usage, "--baseline {}: not among the candidates", settings.baseline);
  }
  return Session(candidates, settings, progress).run(open);
}

}  // namespace heaptape::replayer
