#include <string>

#include "analyzers/render/stats_text.h"
#include "analyzers/render/tape_words.h"

namespace heaptape::analyzers {

using format::Kind;
using format::TapeInfo;

namespace {

void add_totals(Json& json, const Totals& t, std::size_t threads) {
  json["events"] = t.events;
  json["threads"] = threads;
  json["total_alloc_bytes"] = t.total_alloc_bytes;
  json["largest_request"] = t.largest_request;
  json["peak_live_bytes"] = t.peak_live_bytes;
  json["peak_event"] = t.peak_event;
  json["peak_time_ns"] = t.peak_time_ns;
  json["objects_at_peak"] = t.objects_at_peak;
  json["peak_live_objects"] = t.peak_live_objects;
  json["end_live_objects"] = t.end_live_objects;
  json["end_live_bytes"] = t.end_live_bytes;
  for (std::size_t k = 0; k < t.calls_by_kind.size(); ++k) {
    if (const auto kind = static_cast<Kind>(k); is_known(kind)) {
      json[std::string(kind_key(kind))] = t.calls(kind);
    }
  }
  json["free_null"] = t.free_null;
  json["realloc_null"] = t.realloc_null;
  json["realloc_zero"] = t.realloc_zero;
  json["realloc_in_place"] = t.realloc_in_place;
  json["zero_size_allocs"] = t.zero_size_allocs;
  json["failed_calls"] = t.failed_calls;
  json["largest_failed_request"] = t.largest_failed_request;
  json["blocks"] = t.blocks;
  json["first_time_ns"] = t.first_time_ns;
  json["last_time_ns"] = t.last_time_ns;
}

Json size_rows(const std::vector<SizeRow>& rows, std::size_t most) {
  Json list = Json::array();
  for (const SizeRow& row : rows) {
    if (list.size() == most) {
      break;
    }
    list.push_back({{"low", row.low}, {"high", row.high}, {"count", row.count}, {"bytes", row.bytes}});
  }
  return list;
}

Json quantiles(const LogHistogram& h) {
  return {{"p10", h.quantile(0.1)},
          {"p50", h.quantile(0.5)},
          {"p90", h.quantile(0.9)},
          {"p99", h.quantile(0.99)},
          {"largest", h.largest()}};
}

// Powers of two: {low, high, count}.
Json histogram(const LogHistogram& h) {
  Json list = Json::array();
  const auto rows = h.rows();
  for (std::size_t bits = 0; bits < rows.size(); ++bits) {
    if (rows[bits] != 0) {
      const std::uint64_t low = bits == 0 ? 0 : std::uint64_t{1} << (bits - 1);
      list.push_back({{"low", low}, {"high", bits == 0 ? 0 : low + (low - 1)}, {"count", rows[bits]}});
    }
  }
  return list;
}

Json lifetimes(const Lifetimes& l) {
  return {{"released", l.released},
          {"released_by_other_thread", l.released_by_other_thread},
          {"resized_by_other_thread", l.resized_by_other_thread},
          {"released_by_implication", l.released_by_implication},
          {"mismatched", l.mismatched},
          {"calls", quantiles(l.calls)},
          {"nanoseconds", quantiles(l.nanoseconds)},
          {"calls_histogram", histogram(l.calls)},
          {"nanoseconds_histogram", histogram(l.nanoseconds)}};
}

Json thread_rows(const Stats& stats, const TapeInfo& info) {
  Json list = Json::array();
  for (const ThreadRow& r : stats.threads) {
    list.push_back({{"thread", static_cast<std::uint32_t>(r.thread)},
                    {"name", thread_label(info, r.thread)},
                    {"calls", r.calls},
                    {"acquires", r.acquires},
                    {"reallocs", r.reallocs},
                    {"releases", r.releases},
                    {"alloc_bytes", r.alloc_bytes},
                    {"releases_of_others", r.releases_of_others},
                    {"released_by_others", r.released_by_others},
                    {"peak_live_bytes", r.peak_live_bytes},
                    {"end_live_bytes", r.live_bytes},
                    {"first_time_ns", r.first_ns},
                    {"last_time_ns", r.last_ns}});
  }
  return list;
}

// Columns rather than rows: a long curve stays readable by programs and small.
Json curve(const std::vector<CurvePoint>& points) {
  Json event = Json::array();
  Json time_ns = Json::array();
  Json live_bytes = Json::array();
  Json highest_bytes = Json::array();
  Json live_objects = Json::array();
  for (const CurvePoint& p : points) {
    event.push_back(p.call);
    time_ns.push_back(p.time_ns);
    live_bytes.push_back(p.live_bytes);
    highest_bytes.push_back(p.highest_bytes);
    live_objects.push_back(p.live_objects);
  }
  return {{"event", event},
          {"time_ns", time_ns},
          {"live_bytes", live_bytes},
          {"highest_bytes", highest_bytes},
          {"live_objects", live_objects}};
}

}  // namespace

Json stats_json(std::string_view tape, const Stats& stats, const TapeInfo& info) {
  constexpr std::size_t most_classes = 1000;
  Json json = document("stats", 1);
  json["tape"] = tape;
  json["program"] = info.header.program;
  json["allocator"] = info.header.allocator;
  json["duration_ns"] = duration_ns(info);
  add_totals(json, stats.totals, stats.threads.size());
  const format::MergeReport& m = stats.merged;
  json["contradictions"] = m.contradictions;
  json["repairs"] = m.repairs;
  json["unknown_frees"] = m.unknown_releases;
  json["open_reallocs"] = m.open_reallocs;
  json["gaps"] = m.gaps;
  json["lost_events"] = m.lost_events;
  json["late_events"] = m.late_events;
  json["implied_by_damage"] = m.implied_by_damage;
  json["truncated"] = info.damage.truncated;
  json["anomalies"] = anomalies(stats, info);
  json["size_quantiles"] = quantiles(stats.sizes.sizes);
  json["size_histogram"] = size_rows(stats.sizes.powers, stats.sizes.powers.size());
  json["top_sizes"] = size_rows(stats.sizes.classes, most_classes);
  Json alignments = Json::array();
  for (const AlignmentRow& row : stats.sizes.alignments) {
    alignments.push_back({{"alignment", row.alignment}, {"count", row.count}, {"bytes", row.bytes}});
  }
  json["alignments"] = std::move(alignments);
  json["odd_alignments"] = stats.sizes.odd_alignments;
  json["lifetimes"] = lifetimes(stats.lifetimes);
  json["thread_table"] = thread_rows(stats, info);
  json["live_curve"] = {{"by_time", curve(stats.curve.by_time)}, {"by_event", curve(stats.curve.by_call)}};
  json["damage"] = damage_json(info.damage);
  json["recorder"] = recorder_json(info.footer.recorder);
  return json;
}

}  // namespace heaptape::analyzers
