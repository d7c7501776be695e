#include "recorder/collector/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "format/base/units.h"

namespace heaptape::collector {

using format::EndReason;
using format::format_count;
using format::format_duration;
using format::format_size;

namespace {

const char* reason_key(EndReason reason) {
  switch (reason) {
    case EndReason::exited:
      return "exited";
    case EndReason::killed:
      return "killed";
    case EndReason::replaced:
      return "replaced";
    case EndReason::stopped:
      return "stopped";
    case EndReason::unknown:
      break;
  }
  return "unknown";
}

std::string end_in_words(const TapeSummary& tape) {
  switch (tape.footer.reason) {
    case EndReason::exited:
      return fmt::format("exit status {}", tape.footer.value);
    case EndReason::killed: {
      const char* name = ::sigabbrev_np(tape.footer.value);
      return name != nullptr ? fmt::format("killed by SIG{}", name)
                             : fmt::format("killed by signal {}", tape.footer.value);
    }
    case EndReason::replaced:
      return "replaced by exec";
    case EndReason::stopped:
      return tape.failure.empty() ? "recording stopped" : "recording failed: " + tape.failure;
    case EndReason::unknown:
      break;
  }
  return tape.failure.empty() ? "ended" : "recording failed: " + tape.failure;
}

double bytes_per_event(const TapeSummary& tape) {
  return tape.footer.events == 0
             ? 0.0
             : static_cast<double>(tape.tape_bytes) / static_cast<double>(tape.footer.events);
}

std::string plural(std::uint64_t n, const char* what) {
  return fmt::format("{} {}{}", format_count(n), what, n == 1 ? "" : "s");
}

void append_losses(std::string& text, const TapeSummary& tape) {
  const format::RecorderStats& r = tape.footer.recorder;
  if (r.stalls != 0) {
    text += fmt::format("    waited {} for the recorder, {} in all\n", plural(r.stalls, "time"),
                        format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(r.stalled_ns))));
  }
  const std::uint64_t lost = r.dropped_events + r.signal_losses;
  if (lost != 0 || r.lost_threads != 0 || tape.damaged_rings != 0) {
    text += fmt::format("    LOST: {} dropped, {} in signal handlers, {} without a ring, {} damaged\n",
                        plural(r.dropped_events, "event"), format_count(r.signal_losses),
                        plural(r.lost_threads, "thread"), plural(tape.damaged_rings, "ring"));
  }
}

std::string line_of(const TapeSummary& tape) {
  std::string line = fmt::format(
      "{}  {} (pid {}): {} of {}, {}", tape.path.empty() ? "(no tape)" : tape.path.native(), tape.program,
      tape.pid, plural(tape.footer.events, "event"), plural(tape.threads, "thread"), end_in_words(tape));
  if (!tape.path.empty()) {
    line += fmt::format(", {}, {:.2f} bytes per event", format_size(tape.tape_bytes), bytes_per_event(tape));
  }
  return line;
}

// All, or the program's own last image, those that failed and the largest; in order of their ends.
std::vector<std::size_t> tapes_to_show(const RecordingSummary& summary, std::size_t most) {
  std::vector<std::size_t> shown(summary.tapes.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() > most) {
    const auto rank = [&](std::size_t i) {
      const TapeSummary& t = summary.tapes[i];
      const bool always = !t.failure.empty() || (t.root && t.footer.reason != EndReason::replaced);
      return std::pair(!always, ~t.footer.events);
    };
    std::ranges::sort(shown, {}, rank);
    shown.resize(most);
    std::ranges::sort(shown);
  }
  return shown;
}

}  // namespace

std::uint64_t RecordingSummary::events() const noexcept {
  std::uint64_t sum = 0;
  for (const TapeSummary& tape : tapes) {
    sum += tape.footer.events;
  }
  return sum;
}

std::size_t RecordingSummary::largest() const noexcept {
  const auto most = std::ranges::max_element(tapes, {}, [](const TapeSummary& t) { return t.footer.events; });
  return static_cast<std::size_t>(most - tapes.begin());
}

std::string to_text(const RecordingSummary& summary) {
  constexpr std::size_t most_lines = 12;
  std::string text;
  const std::size_t largest = summary.largest();
  const std::vector<std::size_t> shown = tapes_to_show(summary, most_lines);
  for (const std::size_t i : shown) {
    const TapeSummary& tape = summary.tapes[i];
    const bool mark = summary.tapes.size() > 1 && i == largest && tape.footer.events != 0;
    text += fmt::format("{} {}\n", mark ? "*" : " ", line_of(tape));
    append_losses(text, tape);
  }
  if (shown.size() < summary.tapes.size()) {
    text += fmt::format("  and {} of other processes (--summary lists all)\n",
                        plural(summary.tapes.size() - shown.size(), "smaller tape"));
  }
  if (summary.tapes.size() > 1) {
    text += "  (* = most events)\n";
  }
  const std::uint64_t events = summary.events();
  text += fmt::format("  {} recorded in {}; recorder used {:.2f} s of processor time",
                      plural(events, "event"), format_duration(std::chrono::nanoseconds(summary.duration_ns)),
                      summary.recorder_cpu_seconds);
  if (events != 0) {
    text += fmt::format(" ({:.0f} ns per event)",
                        summary.recorder_cpu_seconds * 1e9 / static_cast<double>(events));
  }
  text += '\n';
  return text;
}

std::string to_json(const RecordingSummary& summary) {
  nlohmann::ordered_json json;
  json["schema"] = "heaptape-record-1";
  json["events"] = summary.events();
  json["duration_ns"] = summary.duration_ns;
  json["recorder_cpu_seconds"] = summary.recorder_cpu_seconds;
  json["program_cpu_seconds"] = summary.program_cpu_seconds;
  json["program_ended"] = summary.program_ended;
  json["program_status"] = summary.program_status;
  json["refused_processes"] = summary.refused;
  json["warnings"] = summary.warnings;
  const std::size_t largest = summary.largest();
  json["largest"] = largest < summary.tapes.size() ? summary.tapes[largest].path.native() : "";
  json["tapes"] = nlohmann::ordered_json::array();
  for (const TapeSummary& tape : summary.tapes) {
    const format::RecorderStats& r = tape.footer.recorder;
    json["tapes"].push_back({{"path", tape.path.native()},
                             {"program", tape.program},
                             {"executable", tape.executable},
                             {"pid", tape.pid},
                             {"root", tape.root},
                             {"reason", reason_key(tape.footer.reason)},
                             {"value", tape.footer.value},
                             {"failure", tape.failure},
                             {"events", tape.footer.events},
                             {"threads", tape.threads},
                             {"tape_bytes", tape.tape_bytes},
                             {"duration_ns", tape.footer.duration_ns},
                             {"stalls", r.stalls},
                             {"stalled_ns", r.stalled_ns},
                             {"dropped_events", r.dropped_events},
                             {"own_allocations", r.own_allocations},
                             {"nested_calls", r.nested_calls},
                             {"signal_losses", r.signal_losses},
                             {"lost_threads", r.lost_threads},
                             {"damaged_rings", tape.damaged_rings}});
  }
  // Names of programs and files need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

format::Result<void> write_json(const RecordingSummary& summary, const std::string& path) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << to_json(summary);
  file.close();
  if (!file) {
    return format::system_failure(fmt::format("--summary {}", path), errno);
  }
  return {};
}

}  // namespace heaptape::collector
