// The parts of the page that tell about a replay, and the data of all charts.
#include <fmt/format.h>

#include <algorithm>

#include "analyzers/render/html/html.h"
#include "analyzers/render/html/report_page.h"
#include "format/base/units.h"

namespace heaptape::analyzers {

using format::format_size;
using replayer::CandidateResult;
using replayer::ReplayResult;

namespace {

std::string estimate(const replayer::Estimate& e) {
  return fmt::format(
      R"(<data value="{0}" title="95 % interval: {1:.1f} to {2:.1f} ns">{0:.1f} <small>{1:.1f}–{2:.1f}</small></data>)",
      e.median, e.low, e.high);
}

std::string ratio(double value) {
  return fmt::format(R"(<data value="{0}">{1:.1f} %</data>)", value, value * 100);
}

std::string speed_of(const ReplayResult& replay, const std::string& allocator) {
  if (allocator == replay.baseline) {
    return "baseline";
  }
  for (const replayer::Verdict& verdict : replay.verdicts) {
    if (verdict.allocator == allocator && verdict.speed) {
      return fmt::format("{:.2f}× <small>{:.2f}–{:.2f}</small>{}", verdict.speed->median, verdict.speed->low,
                         verdict.speed->high,
                         verdict.significant ? "" : " " + term("not_significant", "n.s."));
    }
  }
  return "n/a";
}

std::vector<const CandidateResult*> comparable(const ReplayResult& replay) {
  std::vector<const CandidateResult*> list;
  for (const CandidateResult& c : replay.results) {
    if (c.is_comparable() && c.allocator != "null") {
      list.push_back(&c);
    }
  }
  return list;
}

std::string failure_of(const CandidateResult& c) {
  return c.failure.empty() ? fmt::format("{} allocations failed", c.failed_allocations) : c.failure;
}

std::string candidate_table(const ReplayResult& replay) {
  HtmlTable table("Allocators compared",
                  {"allocator", term("net_time", "ns per call"), term("speed"), term("peak_resident"),
                   term("final_resident"), term("after_purge"), term("frag_mean", "frag. 1 mean"),
                   term("frag_peak_live", "2 at peak live"), term("frag_peak_resident", "3 at peak resident"),
                   term("frag_peaks", "4 peak/peak"), term("occupancy")});
  const auto good = comparable(replay);
  const auto least = [&](auto value) {
    double best = 0;
    for (const CandidateResult* c : good) {
      best = c == good.front() ? value(*c) : std::min(best, value(*c));
    }
    return best;
  };
  const auto net = [](const CandidateResult& c) { return c.time.net_ns_per_event.median; };
  const auto peak = [](const CandidateResult& c) { return static_cast<double>(c.space.peak_resident_bytes); };
  const double fastest = least(net);
  const double smallest = least(peak);
  const auto mark = [](bool best, const std::string& cell) {
    return best ? R"(<strong title="lowest of those compared">)" + cell + "</strong>" : cell;
  };
  for (const CandidateResult& c : replay.results) {
    const std::string name =
        fmt::format(R"(<span title="{}">{}</span>)", escaped(c.version), escaped(c.allocator));
    if (!c.is_comparable()) {
      table.row({name, "<span class=\"failed\">" + escaped(failure_of(c)) + "</span>"}, "failed");
      continue;
    }
    const auto& s = c.space;
    table.row({name, mark(net(c) <= fastest, estimate(c.time.net_ns_per_event)),
               speed_of(replay, c.allocator), mark(peak(c) <= smallest, html_size(s.peak_resident_bytes)),
               html_size(s.final_resident_bytes),
               s.purged ? html_size(s.after_purge_resident_bytes) : "no purge call",
               ratio(s.resident.mean_over_run), ratio(s.resident.at_requested_peak.value),
               ratio(s.resident.at_own_peak.value), ratio(s.resident.own_peak_over_requested_peak),
               ratio(s.page_occupancy)});
  }
  return table.html();
}

Json curve_of(const CandidateResult& c) {
  Json event = Json::array();
  Json time_ns = Json::array();
  Json requested = Json::array();
  Json resident = Json::array();
  Json live_pages = Json::array();
  Json committed = Json::array();
  for (const replayer::CurvePoint& p : c.space.curve) {
    event.push_back(p.event_index);
    time_ns.push_back(p.time_ns);
    requested.push_back(p.requested_bytes);
    resident.push_back(p.resident_bytes);
    live_pages.push_back(p.live_page_bytes);
    committed.push_back(p.committed_bytes);
  }
  return {{"label", c.allocator},   {"event", event},       {"time", time_ns},
          {"requested", requested}, {"resident", resident}, {"live_pages", live_pages},
          {"committed", committed}};
}

// Where in the order of calls a moment lies: the nearest point of the curve at or before it.
std::uint64_t call_at(const LiveCurve& curve, std::int64_t time_ns) {
  const auto at = std::upper_bound(curve.by_time.begin(), curve.by_time.end(), time_ns,
                                   [](std::int64_t t, const CurvePoint& p) { return t < p.time_ns; });
  return at == curve.by_time.begin() ? 0 : (at - 1)->call;
}

Json live_curve(const std::vector<CurvePoint>& points) {
  Json event = Json::array();
  Json time_ns = Json::array();
  Json live = Json::array();
  for (const CurvePoint& p : points) {
    event.push_back(p.call);
    time_ns.push_back(p.time_ns);
    live.push_back(p.highest_bytes);
  }
  return {{"event", event}, {"time", time_ns}, {"live", live}};
}

}  // namespace

std::vector<std::string> replay_sentences(const ReplayResult& replay) {
  std::vector<std::string> out;
  auto list = comparable(replay);
  if (list.size() >= 2) {
    std::stable_sort(list.begin(), list.end(), [](const CandidateResult* a, const CandidateResult* b) {
      return a->space.peak_resident_bytes < b->space.peak_resident_bytes;
    });
    out.push_back(fmt::format(
        "Least memory at the peak: {} with {}; most: {} with {}. At most {} were live at once.",
        list.front()->allocator, format_size(list.front()->space.peak_resident_bytes), list.back()->allocator,
        format_size(list.back()->space.peak_resident_bytes), format_size(replay.tape.requested_peak_bytes)));
  }
  for (const CandidateResult& c : replay.results) {
    if (!c.is_comparable()) {
      out.push_back(fmt::format("{} is not compared: {}.", c.allocator, failure_of(c)));
    }
  }
  return out;
}

std::string replay_section(const ReportInput& input) {
  if (input.replay == nullptr) {
    return {};
  }
  const ReplayResult& replay = *input.replay;
  std::string out = "<section id=\"replay\"><h2>Allocators compared</h2>\n";
  // A recorded tape stores a realloc as two events, a packed one as one.
  if (replay.tape.events != input.info.events && replay.tape.events != input.stats.totals.events) {
    out += fmt::format(
        "<p class=\"warning\">These results are of another tape ({}, {} events), not of this one ({} "
        "events).</p>\n",
        escaped(replay.tape.path), html_count(replay.tape.events), html_count(input.info.events));
  }
  out += fmt::format("<p>The same {} calls for every allocator{}.", html_count(replay.tape.calls),
                     replay.cpu_model.empty() ? "" : ", on " + escaped(replay.cpu_model));
  // Settings are those of every candidate; one that failed may have none.
  const auto with_settings = std::find_if(replay.results.begin(), replay.results.end(),
                                          [](const CandidateResult& c) { return c.failure.empty(); });
  if (with_settings != replay.results.end()) {
    const CandidateResult& c = *with_settings;
    out += fmt::format(
        " Order <em>{}</em> for time, <em>{}</em> for space; memory touched: <em>{}</em>; huge pages: "
        "<em>{}</em>; {} timed run{} each. The harness itself costs {:.1f} ns per call, which is subtracted.",
        escaped(c.order), escaped(c.space_order), escaped(c.touch), escaped(c.huge_pages), c.runs,
        c.runs == 1 ? "" : "s", replay.null_ns_per_event.median);
  }
  out += "</p>\n";
  return out + candidate_table(replay) + "</section>\n";
}

Json chart_data(const ReportInput& input) {
  Json data;
  data["has_time"] = input.info.header.clock != format::ClockSource::none;
  data["by_time"] = live_curve(input.stats.curve.by_time);
  data["by_event"] = live_curve(input.stats.curve.by_call);
  Json resident = {{"time", Json::array()},
                   {"event", Json::array()},
                   {"resident", Json::array()},
                   {"anonymous", Json::array()}};
  for (const format::ResidentSample& sample : input.info.resident) {
    resident["time"].push_back(sample.time_ns);
    resident["event"].push_back(call_at(input.stats.curve, sample.time_ns));
    resident["resident"].push_back(sample.resident_bytes);
    resident["anonymous"].push_back(sample.anonymous_bytes);
  }
  data["program"] = std::move(resident);
  data["candidates"] = Json::array();
  if (input.replay != nullptr) {
    for (const CandidateResult& c : input.replay->results) {
      if (c.failure.empty() && c.allocator != "null" && !c.space.curve.empty()) {
        data["candidates"].push_back(curve_of(c));
      }
    }
  }
  return data;
}

}  // namespace heaptape::analyzers
