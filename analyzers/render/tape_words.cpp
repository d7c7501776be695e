#include "analyzers/render/tape_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "analyzers/render/table.h"
#include "format/base/units.h"

namespace heaptape::analyzers {

using format::ClockSource;
using format::Damage;
using format::EndReason;
using format::format_count;
using format::format_duration;
using format::format_size;
using format::RecorderStats;
using format::StackMode;
using format::TapeFooter;
using format::TapeForm;
using format::TapeHeader;
using format::TapeInfo;

namespace {

// As a shell needs it, so that empty arguments and blanks are seen.
std::string quoted(const std::string& argument) {
  const bool plain =
      !argument.empty() && argument.find_first_of(" '\"\\$`*?;&|<>(){}~#\t\n") == std::string::npos;
  return plain ? argument : "'" + argument + "'";
}

}  // namespace

// Its own word for itself first: the file may be a link's target with another name (redis-server is
// redis-check-rdb on Debian).
std::string program_name(const TapeHeader& header) {
  std::string name = header.arguments.empty()
                         ? std::string()
                         : std::filesystem::path(header.arguments.front()).filename().string();
  if (name.empty()) {
    name = std::filesystem::path(header.program).filename().string();
  }
  return name.empty() ? "unknown program" : printable(name);
}

std::string command_line(const TapeHeader& header, std::size_t most) {
  std::string line = program_name(header);
  for (std::size_t at = 1; at < header.arguments.size(); ++at) {  // argument 0 is the program's name
    line += " " + printable(quoted(header.arguments[at]));
    if (line.size() > most) {
      line.resize(most);
      while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0x80U) != 0) {
        line.pop_back();  // never half a character
      }
      return line + "...";
    }
  }
  return line;
}

std::string allocator_name(const TapeHeader& header) {
  const std::string file = printable(std::filesystem::path(header.allocator).filename().string());
  if (file.empty()) {
    return "unknown";
  }
  return file.starts_with("libc.so") || file.starts_with("libc-") ? "glibc (" + file + ")" : file;
}

std::string end_words(const TapeFooter& footer) {
  switch (footer.reason) {
    case EndReason::exited:
      return fmt::format("exited with status {}", footer.value);
    case EndReason::killed: {
      const char* name = sigdescr_np(footer.value);
      return fmt::format("killed by signal {} ({})", footer.value, name == nullptr ? "unknown" : name);
    }
    case EndReason::replaced:
      return "went on as another program (exec), on another tape";
    case EndReason::stopped:
      return "ran on after the recording was stopped";
    case EndReason::unknown:
      break;
  }
  return "unknown: the tape has no end";
}

std::string utc(std::uint64_t unix_ns) {
  if (unix_ns == 0) {
    return {};
  }
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) {
    return {};
  }
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text, length};
}

std::string_view form_name(TapeForm form) noexcept {
  return form == TapeForm::packed ? "packed" : "recorded";
}

std::string_view clock_name(ClockSource clock) noexcept {
  switch (clock) {
    case ClockSource::tsc:
      return "tsc";
    case ClockSource::sequence:
      return "sequence";
    case ClockSource::none:
      break;
  }
  return "none";
}

std::string_view stacks_name(StackMode stacks) noexcept {
  return stacks == StackMode::caller ? "caller" : "none";
}

std::string_view end_key(EndReason reason) noexcept {
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

std::int64_t duration_ns(const TapeInfo& info) noexcept {
  std::int64_t longest = info.footer.duration_ns;
  for (const format::ResidentSample& sample : info.resident) {
    longest = std::max(longest, sample.time_ns);
  }
  for (const format::Marker& marker : info.markers) {
    longest = std::max(longest, marker.time_ns);
  }
  return longest;
}

std::string info_text(std::string_view tape, const TapeInfo& info) {
  const TapeHeader& h = info.header;
  TextTable table({{"", Align::left}, {"", Align::left}}, "");
  const std::string started = utc(h.started_unix_ns);
  table.row(
      {"tape", fmt::format("{} ({}, {}, {} block{})", tape, form_name(h.form), format_size(info.file_bytes),
                           format_count(info.blocks), info.blocks == 1 ? "" : "s")});
  table.row({"program", command_line(h, 300)});
  table.row({"executable", h.program});
  table.row({"process", h.pid == 0 ? "unknown" : fmt::format("{} (parent {})", h.pid, h.parent_pid)});
  table.row({"allocator", h.allocator.empty() ? "unknown" : h.allocator});
  table.row(
      {"host", fmt::format("{}, {} x {}", h.host_kernel, h.cpus, h.cpu_model.empty() ? "CPU" : h.cpu_model)});
  table.row({"started", fmt::format("{}{}", started.empty() ? "unknown" : started,
                                    h.from_start ? ", with the program" : ", while the program ran")});
  table.row({"duration", format_duration(std::chrono::nanoseconds(duration_ns(info)))});
  table.row({"end", end_words(info.footer)});
  table.row({"events",
             fmt::format("{}{}", format_count(info.events),
                         h.form == TapeForm::recorded ? " stored (a realloc is two: begin and end)" : "")});
  table.row({"threads", format_count(info.threads.size())});
  table.row({"time", std::string(h.clock == ClockSource::tsc ? "stamped by the time stamp counter"
                                 : h.clock == ClockSource::sequence
                                     ? "order by a shared sequence number, time from the recorder"
                                     : "none: the order alone is known")});
  table.row({"call sites", h.stacks == StackMode::caller ? "return address of each call" : "not recorded"});
  table.row({"addresses", h.keeps_addresses ? "kept" : "replaced by object numbers"});
  table.row({"extras", fmt::format("{} resident sample(s), {} module(s), {} marker(s)",
                                   format_count(info.resident.size()), format_count(info.modules.size()),
                                   format_count(info.markers.size()))});
  table.row({"source", fmt::format("{}{}{}", h.source.empty() ? "unknown" : h.source,
                                   h.heaptape_version.empty() ? "" : ", heaptape ", h.heaptape_version)});
  table.row({"index", info.index_rebuilt ? "missing or wrong; rebuilt by a scan" : "read"});
  if (!info.damage.any()) {
    table.row({"damage", "none"});
  } else {
    table.row(
        {"damage",
         fmt::format("{}{} unreadable place(s), {} skipped, {} block(s) and at least {} event(s) missing",
                     info.damage.truncated ? "cut off at the end; " : "",
                     format_count(info.damage.bad_blocks), format_size(info.damage.skipped_bytes),
                     format_count(info.damage.missing_blocks), format_count(info.damage.missing_events))});
  }
  for (const std::string& note : info.damage.notes) {
    table.row({"", note});
  }
  return table.text();
}

Json damage_json(const Damage& damage) {
  return {{"truncated", damage.truncated},           {"bad_blocks", damage.bad_blocks},
          {"skipped_bytes", damage.skipped_bytes},   {"missing_blocks", damage.missing_blocks},
          {"missing_events", damage.missing_events}, {"notes", damage.notes}};
}

Json recorder_json(const RecorderStats& r) {
  return {{"stalls", r.stalls},
          {"stalled_ns", r.stalled_ns},
          {"dropped_events", r.dropped_events},
          {"own_allocations", r.own_allocations},
          {"nested_calls", r.nested_calls},
          {"signal_losses", r.signal_losses},
          {"lost_threads", r.lost_threads}};
}

Json info_json(std::string_view tape, const TapeInfo& info) {
  const TapeHeader& h = info.header;
  Json json = document("info", 1);
  json["tape"] = tape;
  json["form"] = form_name(h.form);
  json["file_bytes"] = info.file_bytes;
  json["blocks"] = info.blocks;
  json["tape_id"] = fmt::format("{:016x}{:016x}", h.tape_id[0], h.tape_id[1]);
  json["program"] = h.program;
  json["arguments"] = h.arguments;
  json["pid"] = h.pid;
  json["parent_pid"] = h.parent_pid;
  json["allocator"] = h.allocator;
  json["host_kernel"] = h.host_kernel;
  json["cpu_model"] = h.cpu_model;
  json["cpus"] = h.cpus;
  json["page_size_bytes"] = h.page_size_bytes;
  json["started_unix_ns"] = h.started_unix_ns;
  json["from_start"] = h.from_start;
  json["duration_ns"] = duration_ns(info);
  json["end"] = {{"reason", end_key(info.footer.reason)}, {"value", info.footer.value}};
  json["stored_events"] = info.events;
  json["clock"] = clock_name(h.clock);
  json["stacks"] = stacks_name(h.stacks);
  json["keeps_addresses"] = h.keeps_addresses;
  json["source"] = h.source;
  json["heaptape_version"] = h.heaptape_version;
  Json threads = Json::array();
  for (const format::ThreadInfo& t : info.threads) {
    threads.push_back({{"thread", static_cast<std::uint32_t>(t.thread)}, {"tid", t.tid}, {"name", t.name}});
  }
  json["threads"] = info.threads.size();
  json["thread_table"] = std::move(threads);
  Json modules = Json::array();
  for (const format::ModuleInfo& m : info.modules) {
    modules.push_back({{"path", m.path},
                       {"build_id", m.build_id},
                       {"load_address", m.load_address},
                       {"size_bytes", m.size_bytes},
                       {"load_bias", m.load_bias}});
  }
  json["modules"] = std::move(modules);
  Json markers = Json::array();
  for (const format::Marker& m : info.markers) {
    markers.push_back({{"time_ns", m.time_ns}, {"name", m.name}});
  }
  json["markers"] = std::move(markers);
  json["resident_samples"] = info.resident.size();
  json["index_rebuilt"] = info.index_rebuilt;
  json["damage"] = damage_json(info.damage);
  json["recorder"] = recorder_json(info.footer.recorder);
  return json;
}

}  // namespace heaptape::analyzers
