#include "analyzers/render/stats_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "analyzers/render/table.h"
#include "analyzers/render/tape_words.h"
#include "format/base/units.h"

namespace heaptape::analyzers {

using format::format_count;
using format::format_duration;
using format::format_size;
using format::Kind;
using format::TapeInfo;

std::string thread_label(const TapeInfo& info, format::ThreadIndex thread) {
  // Ascending by index; there may be a great many of them.
  const auto at =
      std::lower_bound(info.threads.begin(), info.threads.end(), thread,
                       [](const format::ThreadInfo& t, format::ThreadIndex i) { return t.thread < i; });
  if (at != info.threads.end() && at->thread == thread && !at->name.empty()) {
    return at->name;
  }
  return fmt::format("thread {}", static_cast<std::uint32_t>(thread));
}

namespace {

std::string time(std::int64_t ns) { return format_duration(std::chrono::nanoseconds(ns)); }
std::string time(std::uint64_t ns) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  return time(static_cast<std::int64_t>(std::min(ns, most)));
}

std::string head(std::string_view tape, const Stats& stats, const TapeInfo& info) {
  const std::int64_t duration = std::max(duration_ns(info), stats.totals.last_time_ns);
  return fmt::format("{}: {}\n{} calls by {} thread{} in {}, on {}\n", printable(tape),
                     command_line(info.header), format_count(stats.totals.events),
                     format_count(stats.threads.size()), stats.threads.size() == 1 ? "" : "s", time(duration),
                     allocator_name(info.header));
}

std::string call_table(const Totals& t) {
  TextTable table({{"Calls", Align::left}, {""}, {""}, {"", Align::left}});
  for (std::size_t k = 0; k < t.calls_by_kind.size(); ++k) {
    const auto kind = static_cast<Kind>(k);
    if (t.calls(kind) == 0) {
      continue;
    }
    std::string note;
    if (kind == Kind::realloc || kind == Kind::reallocarray) {
      note = kind == Kind::realloc || t.calls(Kind::realloc) == 0
                 ? fmt::format("{} in place, {} of NULL, {} to size 0", format_count(t.realloc_in_place),
                               format_count(t.realloc_null), format_count(t.realloc_zero))
                 : "counted with realloc";
    } else if (kind == Kind::free && t.free_null != 0) {
      note = fmt::format("{} of NULL (all releases)", format_count(t.free_null));
    }
    table.row(
        {std::string(kind_name(kind)), format_count(t.calls(kind)), percent(t.calls(kind), t.events), note});
  }
  return table.text();
}

std::string memory_table(const Totals& t) {
  TextTable table({{"Memory", Align::left}, {""}, {"", Align::left}});
  table.row({"requested in all", format_size(t.total_alloc_bytes),
             fmt::format("{} blocks", format_count(t.blocks))});
  table.row({"largest request", format_size(t.largest_request), ""});
  table.row({"peak live", format_size(t.peak_live_bytes),
             fmt::format("{} blocks, at call {}, {}", format_count(t.objects_at_peak),
                         format_count(t.peak_event), time(t.peak_time_ns))});
  table.row({"most blocks live", format_count(t.peak_live_objects), ""});
  table.row({"live at the end", format_size(t.end_live_bytes),
             fmt::format("{} blocks", format_count(t.end_live_objects))});
  return table.text();
}

// Columns of the largest live bytes in equal parts of the run; by calls where time is not known.
std::string curve_plot(const Stats& stats, bool has_time) {
  constexpr std::size_t width = 64;
  constexpr std::size_t height = 8;
  const auto& points = has_time ? stats.curve.by_time : stats.curve.by_call;
  const auto position = [has_time](const CurvePoint& p) {
    return has_time ? static_cast<double>(p.time_ns) : static_cast<double>(p.call);
  };
  const auto peak = static_cast<double>(stats.totals.peak_live_bytes);
  if (points.size() < 2 || peak <= 0 || position(points.back()) <= 0) {
    return {};
  }
  std::vector<double> columns;
  double live = 0;
  for (std::size_t at = 0; columns.size() < width;) {
    const double end = position(points.back()) * static_cast<double>(columns.size() + 1) / width;
    double highest = live;  // flat where nothing happens
    for (; at < points.size() && position(points[at]) <= end; ++at) {
      highest = std::max(highest, static_cast<double>(points[at].highest_bytes));
      live = static_cast<double>(points[at].live_bytes);
    }
    columns.push_back(highest);
  }
  std::string out = fmt::format("Live bytes over {}\n", has_time ? "time" : "calls");
  for (std::size_t row = height; row-- > 0;) {
    std::string line = fmt::format(
        "{:>11} |", row == height - 1 ? format_size(stats.totals.peak_live_bytes) : std::string());
    for (const double value : columns) {
      line += value * height / peak > static_cast<double>(row) + 0.5 || (row == 0 && value > 0) ? '#' : ' ';
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  out += fmt::format("{:>11} +{}\n{:>13}{:>{}}\n", "0 B", std::string(width, '-'), "0",
                     has_time ? time(points.back().time_ns) : format_count(points.back().call), width);
  return out;
}

std::string size_tables(const SizeProfile& sizes, std::size_t top) {
  const std::uint64_t count = sizes.sizes.count();
  std::uint64_t most = 0;
  std::uint64_t bytes = 0;
  for (const SizeRow& row : sizes.powers) {
    most = std::max(most, row.count);
    bytes += row.bytes;
  }
  std::string out =
      fmt::format("Sizes: half are at most {}, 90 % at most {}, 99 % at most {}\n",
                  format_size(sizes.sizes.quantile(0.5)), format_size(sizes.sizes.quantile(0.9)),
                  format_size(sizes.sizes.quantile(0.99)));
  TextTable table({{"bytes", Align::left}, {"blocks"}, {"of blocks"}, {"of bytes"}, {"", Align::left}});
  for (const SizeRow& row : sizes.powers) {
    table.row({size_range(row.low, row.high), format_count(row.count), percent(row.count, count),
               percent(row.bytes, bytes),
               bar(static_cast<double>(row.count) / static_cast<double>(most), 40)});
  }
  out += table.text();
  out += fmt::format("\nSizes that ask for most bytes ({} of {})\n", std::min(top, sizes.classes.size()),
                     format_count(sizes.classes.size()));
  TextTable classes({{"size", Align::left}, {"blocks"}, {"of blocks"}, {"bytes"}, {"of bytes"}});
  for (std::size_t at = 0; at < std::min(top, sizes.classes.size()); ++at) {
    const SizeRow& row = sizes.classes[at];
    classes.row({size_range(row.low, row.high), format_count(row.count), percent(row.count, count),
                 format_size(row.bytes), percent(row.bytes, bytes)});
  }
  out += classes.text();
  const bool aligned = std::any_of(sizes.alignments.begin(), sizes.alignments.end(),
                                   [](const AlignmentRow& row) { return row.alignment != 0; });
  if (aligned) {
    TextTable alignments({{"Alignment asked for", Align::left}, {"blocks"}, {"of blocks"}, {"bytes"}});
    for (const AlignmentRow& row : sizes.alignments) {
      alignments.row({row.alignment == 0 ? "none" : format_size(row.alignment), format_count(row.count),
                      percent(row.count, count), format_size(row.bytes)});
    }
    out += "\n" + alignments.text();
  }
  return out;
}

// Rows by powers of ten: ages span many magnitudes.
std::string lifetime_rows(const LogHistogram& ages, bool as_time) {
  const auto rows = ages.decades(false);
  std::uint64_t most = 0;
  for (const LogHistogram::Row& row : rows) {
    most = std::max(most, row.count);
  }
  TextTable table(
      {{as_time ? "age in time" : "age in calls", Align::left}, {"blocks"}, {""}, {"", Align::left}});
  for (const LogHistogram::Row& row : rows) {
    table.row({"below " + (as_time ? time(row.below) : format_count(row.below)), format_count(row.count),
               percent(row.count, ages.count()),
               bar(static_cast<double>(row.count) / static_cast<double>(most), 40)});
  }
  return table.text();
}

std::string lifetime_tables(const Lifetimes& l, bool has_time) {
  std::string out = fmt::format("Lifetimes of the {} blocks released: half live at most {} calls{}\n",
                                format_count(l.released), format_count(l.calls.quantile(0.5)),
                                has_time ? " or " + time(l.nanoseconds.quantile(0.5)) : "");
  out += lifetime_rows(l.calls, false);
  if (has_time) {
    out += lifetime_rows(l.nanoseconds, true);
  }
  out +=
      fmt::format("  released by another thread than acquired them: {} ({})\n",
                  format_count(l.released_by_other_thread), percent(l.released_by_other_thread, l.released));
  return out;
}

std::string thread_table(const Stats& stats, const TapeInfo& info, std::size_t top) {
  std::vector<ThreadRow> rows = stats.threads;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ThreadRow& a, const ThreadRow& b) { return a.calls > b.calls; });
  std::string out = fmt::format("Threads that call most ({} of {})\n", std::min(top, rows.size()),
                                format_count(rows.size()));
  TextTable table({{"#"},
                   {"name", Align::left},
                   {"calls"},
                   {"acquires"},
                   {"reallocs"},
                   {"releases"},
                   {"bytes"},
                   {"releases others'"},
                   {"peak live"},
                   {"live at end"}});
  rows.resize(std::min(top, rows.size()));
  for (const ThreadRow& r : rows) {
    table.row({std::to_string(static_cast<std::uint32_t>(r.thread)), thread_label(info, r.thread),
               format_count(r.calls), format_count(r.acquires), format_count(r.reallocs),
               format_count(r.releases), format_size(r.alloc_bytes), format_count(r.releases_of_others),
               format_size(r.peak_live_bytes), format_size(r.live_bytes)});
  }
  return out + table.text();
}

std::string recorder_line(const TapeInfo& info, const format::MergeReport& merged) {
  const format::RecorderStats& r = info.footer.recorder;
  return fmt::format(
      "Order: {} contradictions, {} repairs, {} unknown releases, {} gaps ({} calls lost)\n"
      "Recorder: {} own allocations, {} stalls ({}), {} nested calls, {} lost in signal handlers\n",
      format_count(merged.contradictions), format_count(merged.repairs),
      format_count(merged.unknown_releases), format_count(merged.gaps), format_count(merged.lost_events),
      format_count(r.own_allocations), format_count(r.stalls), time(r.stalled_ns),
      format_count(r.nested_calls), format_count(r.signal_losses));
}

}  // namespace

std::string stats_text(std::string_view tape, const Stats& stats, const TapeInfo& info,
                       const StatsTextOptions& options) {
  std::string out = head(tape, stats, info);
  for (const std::string& line : anomalies(stats, info)) {
    out += "! " + line + "\n";
  }
  if (stats.totals.events == 0) {
    return out + "The tape holds no allocator calls.\n";
  }
  out += "\n" + call_table(stats.totals) + "\n" + memory_table(stats.totals);
  const bool has_time = info.header.clock != format::ClockSource::none;
  if (const std::string plot = curve_plot(stats, has_time); !plot.empty()) {
    out += "\n" + plot;
  }
  if (stats.sizes.sizes.count() != 0) {
    out += "\n" + size_tables(stats.sizes, options.top);
  }
  if (stats.lifetimes.released != 0) {
    out += "\n" + lifetime_tables(stats.lifetimes, has_time);
  }
  out += "\n" + thread_table(stats, info, options.top);
  out += "\n" + recorder_line(info, stats.merged);
  return out;
}

}  // namespace heaptape::analyzers
