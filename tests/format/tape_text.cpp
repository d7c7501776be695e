#include "tests/format/tape_text.h"

#include <fmt/format.h>

#include <iterator>

#include "tests/format/tape_support.h"

namespace heaptape::format {
namespace {

std::string quote(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 32 && byte < 127 && c != '%') {
      quoted += c;
    } else {
      quoted += fmt::format("%{:02x}", byte);
    }
  }
  return quoted;
}

template <typename E>
auto number(E id) {
  return static_cast<std::underlying_type_t<E>>(id);
}

std::int64_t slot(SlotIndex index) { return index == SlotIndex::none ? -1 : std::int64_t{number(index)}; }

class Text {
 public:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void put_header(Text& out, const TapeHeader& h) {
  out.line("form {} clock {} stacks {} from_start {} keeps_addresses {}", number(h.form), number(h.clock),
           number(h.stacks), static_cast<int>(h.from_start), static_cast<int>(h.keeps_addresses));
  out.line("pid {} parent {} cpus {} page {}", h.pid, h.parent_pid, h.cpus, h.page_size_bytes);
  out.line("id {} {} started {} start_tick {}", h.tape_id[0], h.tape_id[1], h.started_unix_ns, h.start_tick);
  out.line("ticks_per_second {:.3f}", h.ticks_per_second);
  out.line("version {}", quote(h.heaptape_version));
  out.line("program {}", quote(h.program));
  out.line("kernel {}", quote(h.host_kernel));
  out.line("cpu {}", quote(h.cpu_model));
  out.line("allocator {}", quote(h.allocator));
  out.line("source {}", quote(h.source));
  for (const std::string& argument : h.arguments) {
    out.line("argument {}", quote(argument));
  }
}

void put_events(Text& out, const TapeReader& reader) {
  auto cursor = reader.events().value();
  while (true) {
    const auto events = cursor->next().value();
    if (events.empty()) {
      break;
    }
    for (const Event& e : events) {
      out.line(
          "event {} time {} thread {} kind {} flags {} size {} alignment {} object {} slot {}"
          " released {} slot {} size {} address {} {} site {}",
          e.index, e.time_ns, number(e.thread), number(e.kind), e.flags, e.size_bytes, e.alignment,
          number(e.object), slot(e.slot), number(e.released), slot(e.released_slot), e.released_size_bytes,
          e.address, e.released_address, number(e.site));
    }
  }
}

void put_streams(Text& out, const TapeReader& reader) {
  const Streams streams = read_streams(reader).value();
  for (const auto& [thread, events] : streams) {
    for (const RecordedEvent& e : events) {
      out.line("recorded {} kind {} phase {} stamp {} address {} size {} alignment {} site {}", thread,
               number(e.kind), number(e.phase), e.stamp, e.address, e.size_bytes, e.alignment,
               number(e.site));
    }
  }
}

void put_footer(Text& out, const TapeReader& reader) {
  const TapeInfo& info = reader.info();
  const bool packed = info.header.form == TapeForm::packed;
  auto cursor = reader.events().value();
  while (!cursor->next().value().empty()) {
  }
  if (info.footer.reason != EndReason::unknown) {
    const RecorderStats& s = info.footer.recorder;
    out.line("footer reason {} value {} duration {}", number(info.footer.reason), info.footer.value,
             info.footer.duration_ns);
    out.line("recorder {} {} {} {} {} {} {}", s.stalls, s.stalled_ns, s.dropped_events, s.own_allocations,
             s.nested_calls, s.signal_losses, s.lost_threads);
    if (packed) {
      const MergeReport& r = cursor->report();
      out.line("merge {} {} {} {} {} {} {} {} {}", r.events, r.contradictions, r.repairs, r.unknown_releases,
               r.open_reallocs, r.gaps, r.lost_events, r.implied_by_damage, r.late_events);
    }
  }
  const Damage& d = info.damage;
  out.line("damage truncated {} bad {} skipped {} blocks {} events {}", static_cast<int>(d.truncated),
           d.bad_blocks, d.skipped_bytes, d.missing_blocks, d.missing_events);
}

}  // namespace

std::string tape_text(const TapeReader& reader) {
  const TapeInfo& info = reader.info();
  Text out;
  put_header(out, info.header);
  for (const ThreadInfo& t : info.threads) {
    out.line("thread {} tid {} start {} end {} name {}", number(t.thread), t.tid, t.start_tick, t.end_tick,
             quote(t.name));
  }
  for (const ModuleInfo& m : info.modules) {
    out.line("module {} size {} bias {} path {} build {}", m.load_address, m.size_bytes, m.load_bias,
             quote(m.path), quote(m.build_id));
  }
  for (const ResidentSample& s : info.resident) {
    out.line("resident {} {} {}", s.time_ns, s.resident_bytes, s.anonymous_bytes);
  }
  for (const Gap& g : info.gaps) {
    out.line("gap thread {} lost {} stamp {}", number(g.thread), g.lost_events, g.stamp);
  }
  for (const Marker& m : info.markers) {
    out.line("marker {} {}", m.time_ns, quote(m.name));
  }
  if (info.header.form == TapeForm::packed) {
    put_events(out, reader);
  } else {
    put_streams(out, reader);
  }
  put_footer(out, reader);
  return out.take();
}

}  // namespace heaptape::format
