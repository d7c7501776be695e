#include "replayer/measure/table.h"

#include <algorithm>
#include <limits>

#include "format/base/units.h"

namespace heaptape::replayer {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

// Marks the best cell of a column; the others get a blank, so that digits stay under digits.
std::string marked(const std::string& cell, bool is_best) { return cell + (is_best ? "*" : " "); }

// The smallest value among those that may be compared; infinity: there is none.
template <typename Get>
double best_of(const ReplayResult& result, Get get) {
  double best = std::numeric_limits<double>::infinity();
  for (const CandidateResult& c : result.results) {
    if (c.is_comparable() && c.allocator != "null") {
      best = std::min(best, static_cast<double>(get(c)));
    }
  }
  return best;
}

std::string heading(const ReplayResult& result) {
  const ReplayedTape& t = result.tape;
  const CandidateResult& any = result.results.front();
  std::string text =
      fmt::format("{}: {} calls of {} thread{}, at most {} requested at once in {} blocks\n", t.path,
                  format::format_count(t.calls), t.threads, t.threads == 1 ? "" : "s",
                  format::format_size(t.requested_peak_bytes), format::format_count(t.peak_live_objects));
  if (t.skipped_failed + t.skipped_unknown != 0) {
    text += fmt::format("not replayed: {} failed calls, {} releases of blocks from before the recording\n",
                        format::format_count(t.skipped_failed), format::format_count(t.skipped_unknown));
  }
  text += fmt::format("touching: {}; huge pages: {}\n", any.touch, any.huge_pages);
  return text;
}

std::string time_table(const ReplayResult& result) {
  const CandidateResult& any = result.results.front();
  std::string text =
      fmt::format("\nTime, order {}, median of {} run{}, net of the harness ({:.1f} ns per call); * = best\n",
                  any.order, any.runs, any.runs == 1 ? "" : "s", result.null_ns_per_event.median);
  const double best =
      best_of(result, [](const CandidateResult& c) { return c.time.net_ns_per_event.median; });
  Rows rows{{"allocator", "ns per call ", "95 % interval", "CPU ns, gross", "waiting ns", "page faults"}};
  for (const CandidateResult& c : result.results) {
    if (!c.failure.empty()) {
      rows.push_back({c.allocator, "failed "});
      continue;
    }
    const Estimate& net = c.time.net_ns_per_event;
    rows.push_back(
        {c.allocator, marked(fmt::format("{:.1f}", net.median), c.is_comparable() && net.median == best),
         fmt::format("{:.1f} to {:.1f}", net.low, net.high), fmt::format("{:.1f}", c.time.cpu_ns_per_event),
         fmt::format("{:.1f}", c.time.waited_ns_per_event), format::format_count(c.time.page_faults)});
  }
  return text + align_columns(rows);
}

std::string space_table(const ReplayResult& result) {
  const CandidateResult& any = result.results.front();
  std::string text =
      fmt::format("\nSpace, order {}, MiB of resident memory above the start; * = best\n", any.space_order);
  const double best_peak =
      best_of(result, [](const CandidateResult& c) { return c.space.peak_resident_bytes; });
  const double best_end =
      best_of(result, [](const CandidateResult& c) { return c.space.final_resident_bytes; });
  Rows rows{{"allocator", "peak ", "read by", "at end ", "purged", "at start", "frag. mean", "at req. peak",
             "at own peak", "peak/peak", "page use", "2M use"}};
  for (const CandidateResult& c : result.results) {
    if (!c.failure.empty()) {
      rows.push_back({c.allocator, "failed "});
      continue;
    }
    const SpaceResult& s = c.space;
    if (c.allocator == "null") {  // its blocks are all in one place: no pages, no fragmentation
      rows.push_back({c.allocator, marked(mebibytes(s.peak_resident_bytes), false), s.peak_resident_method,
                      marked(mebibytes(s.final_resident_bytes), false)});
      continue;
    }
    const auto is_best = [&](std::uint64_t bytes, double best) {
      return c.is_comparable() && c.allocator != "null" && static_cast<double>(bytes) == best;
    };
    rows.push_back(
        {c.allocator, marked(mebibytes(s.peak_resident_bytes), is_best(s.peak_resident_bytes, best_peak)),
         s.peak_resident_method,
         marked(mebibytes(s.final_resident_bytes), is_best(s.final_resident_bytes, best_end)),
         s.purged ? mebibytes(s.after_purge_resident_bytes) : "-", mebibytes(s.fixed_resident_bytes),
         percent(s.resident.mean_over_run), percent(s.resident.at_requested_peak.value),
         percent(s.resident.at_own_peak.value), percent(s.resident.own_peak_over_requested_peak),
         percent(s.page_occupancy), percent(s.huge_page_occupancy)});
  }
  return text + align_columns(rows);
}

std::string verdict_lines(const ReplayResult& result) {
  std::string text;
  for (const Verdict& v : result.verdicts) {
    text += v.text + "\n";
  }
  const auto baseline =
      std::find_if(result.results.begin(), result.results.end(),
                   [&](const CandidateResult& c) { return c.allocator == result.baseline; });
  for (const CandidateResult& c : result.results) {
    if (baseline == result.results.end() || &c == &*baseline || !c.is_comparable() ||
        !baseline->is_comparable() || c.allocator == "null" || baseline->space.peak_resident_bytes == 0) {
      continue;
    }
    const double ratio = static_cast<double>(c.space.peak_resident_bytes) /
                         static_cast<double>(baseline->space.peak_resident_bytes);
    text += fmt::format("{} needs {:.2f}x the peak memory of {}\n", c.allocator, ratio, baseline->allocator);
  }
  for (const CandidateResult& c : result.results) {
    if (c.misaligned != 0) {
      text += fmt::format("{}: {} blocks were misaligned: do not use it\n", c.allocator, c.misaligned);
    }
    if (c.failure.empty() && c.space.randomised) {
      text +=
          fmt::format("{}: addresses were randomised, placements may differ from run to run\n", c.allocator);
    }
  }
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string align_columns(const std::vector<std::vector<std::string>>& rows, Align align) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap = i == 0 ? "" : "  ";
      line += gap + (i == 0 || align == Align::text ? fmt::format("{:<{}}", row[i], widths[i])
                                                    : fmt::format("{:>{}}", row[i], widths[i]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string replay_text(const ReplayResult& result) {
  if (result.results.empty()) {
    return "nothing was replayed\n";
  }
  return heading(result) + time_table(result) + space_table(result) + verdict_lines(result);
}

}  // namespace heaptape::replayer
