#include "replayer/measure/result.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

namespace heaptape::replayer {

using Json = nlohmann::ordered_json;
using format::ExitCode;
using format::failure;
using format::Result;

namespace {

// One list of fields serves both directions: `fields(archive, value)` names each once, a Writer
// copies values into JSON, a Reader out of it. Never leaves this file.
struct BadField : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A curve is one list per quantity: shorter than a list of points, and what plots take.
struct Column {
  const char* name;
  std::uint64_t CurvePoint::*field;
};
constexpr Column curve_columns[] = {
    {"op_index", &CurvePoint::op_index},
    {"event_index", &CurvePoint::event_index},
    {"requested_bytes", &CurvePoint::requested_bytes},
    {"usable_bytes", &CurvePoint::usable_bytes},
    {"live_page_bytes", &CurvePoint::live_page_bytes},
    {"live_huge_bytes", &CurvePoint::live_huge_bytes},
    {"resident_bytes", &CurvePoint::resident_bytes},
    {"committed_bytes", &CurvePoint::committed_bytes},
    {"reserved_bytes", &CurvePoint::reserved_bytes},
    {"live_objects", &CurvePoint::live_objects},
};

Json write_curve(const std::vector<CurvePoint>& curve) {
  Json json = Json::object();
  for (const Column& c : curve_columns) {
    Json& values = json[c.name] = Json::array();
    for (const CurvePoint& p : curve) {
      values.push_back(p.*c.field);
    }
  }
  Json& times = json["time_ns"] = Json::array();
  Json& exact = json["exact"] = Json::array();
  for (const CurvePoint& p : curve) {
    times.push_back(p.time_ns);
    exact.push_back(p.exact);
  }
  return json;
}

const Json& curve_list(const Json& json, const char* name, std::size_t size) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array() || found->size() != size) {
    throw BadField(fmt::format("{} is not a list as long as the others", name));
  }
  return *found;
}

void read_curve(const Json& json, std::vector<CurvePoint>& curve) {
  if (!json.is_object() || !json.contains("op_index")) {
    throw BadField("is no curve");
  }
  curve.resize(json["op_index"].size());
  const Json& times = curve_list(json, "time_ns", curve.size());
  const Json& exact = curve_list(json, "exact", curve.size());
  for (const Column& c : curve_columns) {
    const Json& values = curve_list(json, c.name, curve.size());
    for (std::size_t i = 0; i < curve.size(); ++i) {
      if (!values[i].is_number_unsigned()) {
        throw BadField(fmt::format("{}: not a number of bytes or of things", c.name));
      }
      curve[i].*c.field = values[i].get<std::uint64_t>();
    }
  }
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (!times[i].is_number_integer() || !exact[i].is_boolean()) {
      throw BadField("time_ns or exact: wrong type");
    }
    curve[i].time_ns = times[i].get<std::int64_t>();
    curve[i].exact = exact[i].get<bool>();
  }
}

template <typename T>
inline constexpr bool is_plain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

class Writer {
 public:
  explicit Writer(Json& json) : json_(json) { json_ = Json::object(); }
  template <typename T>
  void operator()(const char* key, T& value) {
    json_[key] = convert(value);
  }
  template <typename T>
  void nullable(const char* key, T& value) {
    json_[key] = value ? convert(*value) : Json();
  }
  void nullable(const char* key, std::string& value) { json_[key] = value.empty() ? Json() : Json(value); }
  void operator()(const char* key, std::vector<CurvePoint>& curve) { json_[key] = write_curve(curve); }

 private:
  template <typename T>
  static Json convert(T& value) {
    if constexpr (is_plain<T>) {
      return value;
    } else {
      Json json;
      Writer writer(json);
      fields(writer, value);
      return json;
    }
  }
  template <typename T>
  static Json convert(std::vector<T>& values) {
    Json json = Json::array();
    for (T& v : values) {
      json.push_back(convert(v));
    }
    return json;
  }
  Json& json_;
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) {
      throw BadField("not an object");
    }
  }
  template <typename T>
  void operator()(const char* key, T& value) {
    at(key, [&](const Json& json) { convert(json, value); });
  }
  template <typename T>
  void nullable(const char* key, std::optional<T>& value) {
    at(key, [&](const Json& json) {
      if (!json.is_null()) {
        convert(json, value.emplace());
      }
    });
  }
  void nullable(const char* key, std::string& value) {
    at(key, [&](const Json& json) {
      if (!json.is_null()) {
        convert(json, value);
      }
    });
  }
  void operator()(const char* key, std::vector<CurvePoint>& curve) {
    at(key, [&](const Json& json) { read_curve(json, curve); });
  }

 private:
  template <typename Action>
  void at(const char* key, Action action) {
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw BadField(std::string(key) + ": missing");
    }
    try {
      action(*found);
    } catch (const BadField& error) {
      throw BadField(std::string(key) + ": " + error.what());
    }
  }
  template <typename T>
  static void convert(const Json& json, T& value) {
    if constexpr (!is_plain<T>) {
      Reader reader(json);
      fields(reader, value);
    } else {
      const bool fits = std::is_same_v<T, std::string> ? json.is_string()
                        : std::is_same_v<T, bool>      ? json.is_boolean()
                        : std::is_unsigned_v<T>        ? json.is_number_unsigned()
                                                       : json.is_number();
      if (!fits) {
        throw BadField(std::string("is a ") + json.type_name());
      }
      value = json.get<T>();
    }
  }
  template <typename T>
  static void convert(const Json& json, std::vector<T>& values) {
    if (!json.is_array()) {
      throw BadField("not a list");
    }
    for (const Json& item : json) {
      convert(item, values.emplace_back());
    }
  }
  const Json& json_;
};

template <typename Archive>
void fields(Archive& a, Estimate& e) {
  a("median", e.median);
  a("low", e.low);
  a("high", e.high);
}

template <typename Archive>
void fields(Archive& a, MeasureAt& m) {
  a("value", m.value);
  a("event_index", m.event_index);
  a("time_ns", m.time_ns);
}

template <typename Archive>
void fields(Archive& a, Fragmentation& f) {
  a("mean_over_run", f.mean_over_run);
  a("at_requested_peak", f.at_requested_peak);
  a("at_own_peak", f.at_own_peak);
  a("own_peak_over_requested_peak", f.own_peak_over_requested_peak);
  a("integral_ratio", f.integral_ratio);
}

struct BothFragmentations {
  Fragmentation& resident;
  Fragmentation& live_pages;
};
template <typename Archive>
void fields(Archive& a, BothFragmentations& f) {
  a("resident", f.resident);
  a("live_pages", f.live_pages);
}

template <typename Archive>
void fields(Archive& a, ReplayedTape& t) {
  a("path", t.path);
  a("program", t.program);
  a("events", t.events);
  a("calls", t.calls);
  a("threads", t.threads);
  a("skipped_failed", t.skipped_failed);
  a("skipped_unknown", t.skipped_unknown);
  a("freeing_reallocs", t.freeing_reallocs);
  a("requested_peak_bytes", t.requested_peak_bytes);
  a("peak_live_objects", t.peak_live_objects);
}

// Time and space stand beside each other in an allocator's entry, not in objects of their own.
template <typename Archive>
void flat_fields(Archive& a, TimeResult& t) {
  a("ns_per_event", t.ns_per_event);
  a("net_ns_per_event", t.net_ns_per_event);
  a("rounds_ns_per_event", t.rounds);
  a("net_rounds_ns_per_event", t.net_rounds);
  a("cpu_ns_per_event", t.cpu_ns_per_event);
  a("page_faults", t.page_faults);
  a("waits", t.waits);
  a("waited_ns_per_event", t.waited_ns_per_event);
  a("handovers", t.handovers);
  a.nullable("order_digest", t.order_digest);
}

template <typename Archive>
void flat_fields(Archive& a, SpaceResult& s) {
  a("requested_peak_bytes", s.requested_peak_bytes);
  a("peak_resident_bytes", s.peak_resident_bytes);
  a("peak_resident_method", s.peak_resident_method);
  a("final_resident_bytes", s.final_resident_bytes);
  a("after_purge_resident_bytes", s.after_purge_resident_bytes);
  a("purged", s.purged);
  a("fixed_resident_bytes", s.fixed_resident_bytes);
  BothFragmentations fragmentation{s.resident, s.live_pages};
  a("fragmentation", fragmentation);
  a("page_occupancy", s.page_occupancy);
  a("huge_page_occupancy", s.huge_page_occupancy);
  a("has_usable_size", s.has_usable_size);
  a("addresses_randomised", s.randomised);
  a.nullable("space_order_digest", s.order_digest);
  a.nullable("placement_digest", s.placement_digest);
  a.nullable("curve_method", s.curve_method);
  a("curve", s.curve);
}

template <typename Archive>
void fields(Archive& a, CandidateResult& c) {
  a("allocator", c.allocator);
  a.nullable("version", c.version);
  a.nullable("library", c.library);
  a.nullable("failure", c.failure);
  a("order", c.order);
  a("space_order", c.space_order);
  a("touch", c.touch);
  a("thp", c.huge_pages);
  a("runs", c.runs);
  if (!c.failure.empty()) {
    return;  // no numbers
  }
  a("failed_allocations", c.failed_allocations);
  a("misaligned", c.misaligned);
  flat_fields(a, c.time);
  flat_fields(a, c.space);
}

template <typename Archive>
void fields(Archive& a, Verdict& v) {
  a("allocator", v.allocator);
  a("against", v.against);
  a.nullable("speed", v.speed);
  a("significant", v.significant);
  a("text", v.text);
}

template <typename Archive>
void fields(Archive& a, ReplayResult& r) {
  a("heaptape_version", r.heaptape_version);
  a("cpu_model", r.cpu_model);
  a("tape", r.tape);
  a("baseline", r.baseline);
  a("null_ns_per_event", r.null_ns_per_event);
  a("results", r.results);
  a("verdicts", r.verdicts);
}

}  // namespace

Json to_json(const ReplayResult& result) {
  ReplayResult copy = result;  // archives take fields by reference, to fill them or to read them
  Json body;
  Writer writer(body);
  fields(writer, copy);
  Json json = {{"schema", replay_schema}};
  json.update(body);
  return json;
}

Result<ReplayResult> result_from_json(const Json& json) {
  try {
    ReplayResult result;
    std::string schema;
    Reader reader(json);
    reader("schema", schema);
    if (schema != replay_schema) {
      throw BadField(fmt::format("schema is \"{}\", not \"{}\"", schema, replay_schema));
    }
    fields(reader, result);
    return result;
  } catch (const BadField& error) {
    return failure(ExitCode::bad_tape, "not a replay result: {}", error.what());
  }
}

Result<ReplayResult> load_replay_result(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) {
    return failure(ExitCode::bad_tape, "{}: cannot be opened", path.native());
  }
  const Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded()) {
    return failure(ExitCode::bad_tape, "{}: is not JSON; write it with `heaptape replay --json -o FILE`",
                   path.native());
  }
  auto result = result_from_json(json);
  if (!result) {
    return format::Failure(format::Error(result.error()).within(path.native()));
  }
  return result;
}

}  // namespace heaptape::replayer
