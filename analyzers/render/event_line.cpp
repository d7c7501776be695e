#include "analyzers/render/event_line.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace heaptape::analyzers {

using format::Event;
using format::EventFlag;
using format::ObjectId;
using format::SiteId;

namespace {

struct FlagName {
  EventFlag flag;
  std::string_view name;
};

constexpr FlagName flag_names[] = {
    {EventFlag::failed, "failed"},
    {EventFlag::null_argument, "null_argument"},
    {EventFlag::unknown_release, "unknown_release"},
    {EventFlag::implied, "implied"},
    {EventFlag::repaired, "repaired"},
    {EventFlag::in_place, "in_place"},
    {EventFlag::freeing_realloc, "freeing_realloc"},
    {EventFlag::unfinished, "unfinished"},
    {EventFlag::cut, "cut"},
};

void append_block(std::string& out, ObjectId object, std::uint64_t address, bool unknown) {
  if (object != ObjectId::none) {
    fmt::format_to(std::back_inserter(out), "#{}", static_cast<std::uint64_t>(object));
  } else {
    out += unknown ? "unknown" : "NULL";
  }
  if (address != 0) {
    fmt::format_to(std::back_inserter(out), "@{:#x}", address);
  }
}

}  // namespace

// index, seconds, thread, call(arguments) = result, facts
void append_event_text(std::string& out, const Event& e) {
  const auto to = std::back_inserter(out);
  const bool unknown = e.has(EventFlag::unknown_release);
  fmt::format_to(to, "{:>9} {:>14.9f} t{:<3} {}(", e.index, static_cast<double>(e.time_ns) / 1e9,
                 static_cast<std::uint32_t>(e.thread), kind_name(e.kind));
  if (is_acquire(e.kind)) {
    fmt::format_to(to, "{}", e.size_bytes);
  } else if (is_realloc(e.kind)) {
    append_block(out, e.released, e.released_address, unknown);
    fmt::format_to(to, ", {}", e.size_bytes);
  } else if (is_release(e.kind)) {
    append_block(out, e.released, e.released_address, unknown);
  }
  if (e.alignment != 0) {
    fmt::format_to(to, ", align {}", e.alignment);
  }
  out += ')';
  if (is_acquire(e.kind) || is_realloc(e.kind)) {
    out += " = ";
    if (e.has(EventFlag::unfinished)) {
      out += '?';
    } else {
      append_block(out, e.object, e.address, false);
    }
  }
  if (e.released != ObjectId::none) {
    fmt::format_to(to, "  -{} B", e.released_size_bytes);
  }
  if (e.site != SiteId::none) {
    fmt::format_to(to, "  from {:#x}", static_cast<std::uint64_t>(e.site));
  }
  for (const FlagName& f : flag_names) {
    if (e.has(f.flag)) {
      fmt::format_to(to, "  {}", f.name);
    }
  }
  out += '\n';
}

// Built by hand: all values are numbers or known words, and a tape has millions of lines.
void append_event_json(std::string& out, const Event& e) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"index":{},"time_ns":{},"thread":{},"kind":"{}","size_bytes":{})", e.index,
                 e.time_ns, static_cast<std::uint32_t>(e.thread), kind_key(e.kind), e.size_bytes);
  if (e.alignment != 0) {
    fmt::format_to(to, R"(,"alignment":{})", e.alignment);
  }
  if (e.object != ObjectId::none) {
    fmt::format_to(to, R"(,"object":{})", static_cast<std::uint64_t>(e.object));
  }
  if (e.address != 0) {
    fmt::format_to(to, R"(,"address":{})", e.address);
  }
  if (e.released != ObjectId::none) {
    fmt::format_to(to, R"(,"released":{},"released_size_bytes":{})", static_cast<std::uint64_t>(e.released),
                   e.released_size_bytes);
  }
  if (e.released_address != 0) {
    fmt::format_to(to, R"(,"released_address":{})", e.released_address);
  }
  if (e.site != SiteId::none) {
    fmt::format_to(to, R"(,"site":{})", static_cast<std::uint64_t>(e.site));
  }
  out += R"(,"flags":[)";
  bool first = true;
  for (const FlagName& f : flag_names) {
    if (e.has(f.flag)) {
      fmt::format_to(to, R"({}"{}")", first ? "" : ",", f.name);
      first = false;
    }
  }
  out += "]}\n";
}

}  // namespace heaptape::analyzers
