// The parts of the page that tell about the tape.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analyzers/render/html/html.h"
#include "analyzers/render/html/report_page.h"
#include "analyzers/render/stats_text.h"
#include "analyzers/render/table.h"
#include "analyzers/render/tape_words.h"
#include "format/base/units.h"

namespace heaptape::analyzers {

using format::format_count;
using format::format_duration;
using format::format_size;
using format::Kind;

namespace {

std::string time(std::int64_t ns) { return format_duration(std::chrono::nanoseconds(ns)); }
std::string time(std::uint64_t ns) {
  return time(
      static_cast<std::int64_t>(std::min<std::uint64_t>(ns, std::numeric_limits<std::int64_t>::max())));
}
double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
bool has_time(const ReportInput& input) { return input.info.header.clock != format::ClockSource::none; }

std::string figure(std::string_view value, std::string_view label) {
  return fmt::format(
      "<div class=\"figure\"><span class=\"value\">{}</span><span class=\"label\">{}</span></div>\n", value,
      label);
}

std::string sentences(const ReportInput& input) {
  const Totals& t = input.stats.totals;
  const Lifetimes& l = input.stats.lifetimes;
  const std::string allocator = allocator_name(input.info.header);
  std::string out = fmt::format(
      "<p>{} made {} allocator {} on {} thread{}{}{}. It asked for {} in {} blocks, half of them of at most "
      "{}.",
      escaped(program_name(input.info.header)), html_count(t.events),
      term("call", t.events == 1 ? "call" : "calls"), html_count(input.stats.threads.size()),
      input.stats.threads.size() == 1 ? "" : "s",
      has_time(input) ? " in " + html_time(std::max(duration_ns(input.info), t.last_time_ns)) : "",
      allocator == "unknown" ? "" : ", served by " + escaped(allocator), html_size(t.total_alloc_bytes),
      html_count(t.blocks), html_size(input.stats.sizes.sizes.quantile(0.5)));
  out += fmt::format(" At most {} {} at once{}; {} in {} blocks were {}.</p>\n", html_size(t.peak_live_bytes),
                     term("live", "were live"),
                     has_time(input) ? ", " + html_time(t.peak_time_ns) + " into the run" : "",
                     html_size(t.end_live_bytes), html_count(t.end_live_objects), term("end_live"));
  if (l.released != 0) {
    out += fmt::format(
        "<p>Half of the blocks released had lived at most {} calls{}; {} of them were {}.</p>\n",
        html_count(l.calls.quantile(0.5)),
        has_time(input) ? " or " + html_time(static_cast<std::int64_t>(l.nanoseconds.quantile(0.5))) : "",
        percent(l.released_by_other_thread, l.released), term("foreign"));
  }
  return out;
}

}  // namespace

std::string overview_section(const ReportInput& input) {
  const Totals& t = input.stats.totals;
  std::string out = "<section id=\"overview\"><h2>Overview</h2>\n";
  out += t.events == 0 ? "<p>The tape holds no allocator calls.</p>\n" : sentences(input);
  const auto odd = anomalies(input.stats, input.info);
  if (!odd.empty()) {
    out += "<h3>What to know before trusting the numbers</h3>\n<ul class=\"warnings\">\n";
    for (const std::string& line : odd) {
      out += "<li>" + escaped(line) + "</li>\n";
    }
    out += "</ul>\n";
  }
  if (input.replay != nullptr) {
    out += "<h3>Which allocator serves it best</h3>\n<ul class=\"verdicts\">\n";
    for (const replayer::Verdict& verdict : input.replay->verdicts) {
      out += "<li>" + escaped(verdict.text) + "</li>\n";
    }
    for (const std::string& line : replay_sentences(*input.replay)) {
      out += "<li>" + escaped(line) + "</li>\n";
    }
    out += "</ul>\n";
  }
  out += "<div class=\"figures\">\n";
  out += figure(html_count(t.events), term("call", "calls"));
  out += figure(html_size(t.total_alloc_bytes), term("total_requested"));
  out += figure(html_size(t.peak_live_bytes), term("peak_live"));
  out += figure(html_count(t.peak_live_objects), "most blocks live");
  out += figure(html_size(t.end_live_bytes), term("end_live"));
  out += figure(html_count(t.failed_calls), term("failed"));
  return out + "</div>\n</section>\n";
}

std::string memory_section(const ReportInput& input) {
  const bool resident = !input.info.resident.empty();
  std::string label = fmt::format(
      "Live requested bytes of {} over the run, at most {}{}", program_name(input.info.header),
      format_size(input.stats.totals.peak_live_bytes), resident ? ", with its resident memory" : "");
  std::string out = "<section id=\"memory\"><h2>Memory over time</h2>\n";
  out += fmt::format("<p>{} bytes of the program{}. {}</p>\n", term("live", "Live"),
                     resident ? ", and its " + term("program_resident", "resident memory") +
                                    " as seen from outside while it was recorded"
                              : "",
                     input.replay != nullptr ? "Below, on the same axis: what each allocator kept " +
                                                   term("resident") + " to serve the same calls."
                                             : "");
  out +=
      "<div class=\"controls\" hidden><span id=\"axis-label\">Horizontal axis:</span> "
      "<button type=\"button\" data-axis=\"time\" aria-pressed=\"true\">time of the recording</button>"
      "<button type=\"button\" data-axis=\"event\" aria-pressed=\"false\">calls</button>"
      "<span class=\"hint\">Drag to zoom, double-click to go back; click a name to hide its "
      "curve.</span></div>\n"
      "<noscript><p class=\"hint\">The charts need JavaScript; the tables hold what matters of "
      "them.</p></noscript>\n";
  out += fmt::format(
      "<figure class=\"chart\" hidden><figcaption>The program</figcaption>"
      "<div id=\"chart-program\" role=\"img\" aria-label=\"{}\"></div></figure>\n",
      escaped(label));
  if (input.replay != nullptr) {
    out +=
        "<figure class=\"chart\" hidden><figcaption>Resident memory of the allocators in the "
        "replay</figcaption>"
        "<div id=\"chart-replay\" role=\"img\" aria-label=\"Resident bytes of each allocator over the run; "
        "the "
        "table of allocators holds the peaks and ends\"></div></figure>\n"
        "<figure class=\"chart\" hidden><figcaption>Where the memory of <select id=\"parts-of\" "
        "aria-label=\"Allocator\"></select> "
        "goes</figcaption><div id=\"chart-parts\" role=\"img\" aria-label=\"Requested bytes, pages that hold "
        "them, "
        "resident and committed bytes of one allocator over the run\"></div></figure>\n";
  }
  HtmlTable table("Live bytes at twenty moments",
                  {has_time(input) ? "time" : "call", "calls so far", "live", "blocks"});
  const auto& points = has_time(input) ? input.stats.curve.by_time : input.stats.curve.by_call;
  const std::size_t step = std::max<std::size_t>(1, points.size() / 20);
  for (std::size_t at = 0; at < points.size(); at += step) {
    const CurvePoint& p = points[std::min(at + step, points.size()) - 1];
    table.row({has_time(input) ? html_time(p.time_ns) : html_count(p.call), html_count(p.call),
               html_size(p.live_bytes), html_count(p.live_objects)});
  }
  return out + "<details><summary>The program's curve as a table</summary>\n" + table.html() +
         "</details>\n</section>\n";
}

std::string sizes_section(const ReportInput& input) {
  const SizeProfile& sizes = input.stats.sizes;
  const std::uint64_t count = sizes.sizes.count();
  std::uint64_t most = 0;
  std::uint64_t bytes = 0;
  for (const SizeRow& row : sizes.powers) {
    most = std::max(most, row.count);
    bytes += row.bytes;
  }
  std::string out = fmt::format(
      "<section id=\"sizes\"><h2>Sizes</h2>\n<p>Half of all requests are for at most {}, nine of ten for at "
      "most {}, "
      "99 of 100 for at most {}; the largest is {}.</p>\n",
      html_size(sizes.sizes.quantile(0.5)), html_size(sizes.sizes.quantile(0.9)),
      html_size(sizes.sizes.quantile(0.99)), html_size(sizes.sizes.largest()));
  HtmlTable powers("Requests by size", {"bytes", "requests", "of requests", "of bytes", "requests, drawn"});
  for (const SizeRow& row : sizes.powers) {
    powers.row({escaped(size_range(row.low, row.high)), html_count(row.count), percent(row.count, count),
                percent(row.bytes, bytes), html_bar(share(row.count, most))});
  }
  out += powers.html();
  HtmlTable classes("Sizes that ask for most bytes",
                    {"size", "requests", "of requests", "bytes", "of bytes", "bytes, drawn"});
  const std::size_t rows = std::min<std::size_t>(15, sizes.classes.size());
  for (std::size_t at = 0; at < rows; ++at) {
    const SizeRow& row = sizes.classes[at];
    classes.row({escaped(size_range(row.low, row.high)), html_count(row.count), percent(row.count, count),
                 html_size(row.bytes), percent(row.bytes, bytes),
                 html_bar(share(row.bytes, sizes.classes.front().bytes))});
  }
  out += classes.html();
  if (sizes.alignments.size() > 1) {
    HtmlTable alignments("Alignments asked for", {"alignment", "requests", "of requests", "bytes"});
    for (const AlignmentRow& row : sizes.alignments) {
      alignments.row({row.alignment == 0 ? "none" : format_size(row.alignment), html_count(row.count),
                      percent(row.count, count), html_size(row.bytes)});
    }
    out += alignments.html();
  }
  return out + "</section>\n";
}

namespace {

std::string age_table(std::string_view caption, const LogHistogram& ages, bool as_time) {
  HtmlTable table(caption, {"age below", "blocks", "of blocks", "so far", "blocks, drawn"});
  const auto rows = ages.decades(true);
  std::uint64_t most = 0;
  for (const LogHistogram::Row& row : rows) {
    most = std::max(most, row.count);
  }
  std::uint64_t so_far = 0;
  for (const LogHistogram::Row& row : rows) {
    so_far += row.count;
    table.row({as_time ? time(row.below) : format_count(row.below), html_count(row.count),
               percent(row.count, ages.count()), percent(so_far, ages.count()),
               html_bar(share(row.count, most))});
  }
  return table.html();
}

}  // namespace

std::string lifetimes_section(const ReportInput& input) {
  const Lifetimes& l = input.stats.lifetimes;
  std::string out = "<section id=\"lifetimes\"><h2>Lifetimes</h2>\n";
  if (l.released == 0) {
    return out + "<p>No block was released.</p></section>\n";
  }
  out += fmt::format("<p>The {} of the {} blocks that were released. {} ({}) were {}.</p>\n",
                     term("lifetime", "lifetimes"), html_count(l.released),
                     html_count(l.released_by_other_thread), percent(l.released_by_other_thread, l.released),
                     term("foreign"));
  out += "<div class=\"side-by-side\">\n" + age_table("Age at release, in calls", l.calls, false);
  if (has_time(input)) {
    out += age_table("Age at release, in time", l.nanoseconds, true);
  }
  return out + "</div>\n</section>\n";
}

std::string threads_section(const ReportInput& input) {
  constexpr std::size_t most_rows = 50;
  std::vector<ThreadRow> rows = input.stats.threads;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ThreadRow& a, const ThreadRow& b) { return a.calls > b.calls; });
  std::string out = "<section id=\"threads\"><h2>Threads</h2>\n";
  if (rows.size() > most_rows) {
    out += fmt::format("<p>The {} of {} threads that call most.</p>\n", most_rows, format_count(rows.size()));
    rows.resize(most_rows);
  }
  HtmlTable table("What each thread calls",
                  {"thread", "calls", "allocations", "reallocs", "releases", term("requested"),
                   term("foreign", "releases of others' blocks"), term("peak_live"), term("end_live")});
  for (const ThreadRow& r : rows) {
    table.row({fmt::format("{} <small>#{}</small>", escaped(thread_label(input.info, r.thread)),
                           static_cast<std::uint32_t>(r.thread)),
               html_count(r.calls), html_count(r.acquires), html_count(r.reallocs), html_count(r.releases),
               html_size(r.alloc_bytes), html_count(r.releases_of_others), html_size(r.peak_live_bytes),
               html_size(r.live_bytes)});
  }
  return out + table.html() + "</section>\n";
}

std::string recording_section(const ReportInput& input) {
  const Totals& t = input.stats.totals;
  const format::MergeReport& m = input.stats.merged;
  const format::RecorderStats& r = input.info.footer.recorder;
  std::string out = "<section id=\"recording\"><h2>The recording</h2>\n";
  HtmlTable calls("Calls by kind", {"kind", "calls", "of calls"});
  for (std::size_t k = 0; k < t.calls_by_kind.size(); ++k) {
    if (const auto kind = static_cast<Kind>(k); t.calls(kind) != 0) {
      calls.row({escaped(kind_name(kind)), html_count(t.calls(kind)), percent(t.calls(kind), t.events)});
    }
  }
  calls.row({"releases of a null pointer", html_count(t.free_null), percent(t.free_null, t.events)});
  calls.row({"realloc of a null pointer", html_count(t.realloc_null), percent(t.realloc_null, t.events)});
  calls.row({"realloc that stayed in place", html_count(t.realloc_in_place),
             percent(t.realloc_in_place, t.events)});
  out += calls.html();
  HtmlTable order("Is the tape complete?", {"fact", "number"});
  order.row({term("contradiction", "contradictions"), html_count(m.contradictions)});
  order.row({term("repair", "repairs"), html_count(m.repairs)});
  order.row({term("unknown", "unknown releases"), html_count(m.unknown_releases)});
  order.row({term("gap", "gaps"),
             fmt::format("{} ({} calls lost)", html_count(m.gaps), html_count(m.lost_events))});
  order.row({"reallocs never ended", html_count(m.open_reallocs)});
  order.row({"cut off", input.info.damage.truncated ? "yes" : "no"});
  order.row({"unreadable places", html_count(input.info.damage.bad_blocks)});
  order.row({"allocations by the recorder itself", html_count(r.own_allocations)});
  order.row({"waits for the recorder", fmt::format("{} ({})", html_count(r.stalls), time(r.stalled_ns))});
  out += order.html();
  return out + "<details><summary>Where and how it was recorded</summary>\n<pre>" +
         escaped(info_text(input.tape, input.info)) + "</pre></details>\n</section>\n";
}

}  // namespace heaptape::analyzers
