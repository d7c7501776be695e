#include "tests/e2e/tape_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/e2e/counter/counter.h"
#include "tests/e2e/run.h"
#include "tests/guests/guest.h"

namespace heaptape::e2e {

using format::Event;
using format::EventFlag;
using format::Kind;

void add(Totals& totals, const Event& event) {
  if (event.has(EventFlag::implied)) {
    return;
  }
  CallSums& sums = totals[std::string(format::kind_key(event.kind))];
  ++sums.calls;
  sums.nulls += event.has(EventFlag::null_argument) ? 1 : 0;
  sums.failures += event.has(EventFlag::failed) ? 1 : 0;
  if (!event.has(EventFlag::failed) && (format::is_acquire(event.kind) || format::is_realloc(event.kind))) {
    sums.bytes += event.size_bytes;
  }
}

void PrintTo(const CallSums& sums, std::ostream* out) {  // NOLINT(readability-identifier-naming)
  *out << fmt::format("{} calls, {} failures, {} bytes, {} nulls", sums.calls, sums.failures, sums.bytes,
                      sums.nulls);
}

Totals counted_totals(const std::filesystem::path& file, std::string* program) {
  const std::string content = read_file(file);
  CounterPage page{};
  if (content.size() != sizeof page) {
    ADD_FAILURE() << file << ": " << content.size() << " bytes are no page of the counter";
    return {};
  }
  std::memcpy(&page, content.data(), sizeof page);
  EXPECT_EQ(page.uncounted, 0U) << file << ": calls came before the counter was ready";
  if (program != nullptr) {
    *program = page.program;
  }
  static const char* const names[] = {
#define HEAPTAPE_COUNTED_NAME(name) #name,
      HEAPTAPE_COUNTED_CALLS(HEAPTAPE_COUNTED_NAME)
#undef HEAPTAPE_COUNTED_NAME
  };
  Totals totals;
  for (int i = 0; i < counted_calls; ++i) {
    const CallTotals& c = page.calls[i];
    if (c.calls != 0) {
      totals[names[i]] = {c.calls, c.failures, c.bytes, c.nulls};
    }
  }
  return totals;
}

std::uint64_t Tape::count(Kind kind, std::uint64_t size_bytes) const {
  return static_cast<std::uint64_t>(std::count_if(events.begin(), events.end(), [=](const Event& e) {
    return e.kind == kind && e.size_bytes == size_bytes && !e.has(EventFlag::failed);
  }));
}

std::uint64_t Tape::released(std::uint64_t size_bytes) const {
  return static_cast<std::uint64_t>(std::count_if(events.begin(), events.end(), [=](const Event& e) {
    return e.released != format::ObjectId::none && e.released_size_bytes == size_bytes &&
           !e.has(EventFlag::implied);
  }));
}

Tape read_tape(const std::filesystem::path& path, Events events) {
  Tape tape;
  tape.path = path;
  const auto reader = format::TapeReader::open(path);
  if (!reader) {
    ADD_FAILURE() << path << ": " << reader.error().message();
    return tape;
  }
  tape.info = reader->info();
  const auto cursor = reader->events();
  if (!cursor) {
    ADD_FAILURE() << path << ": " << cursor.error().message();
    return tape;
  }
  for (;;) {
    const auto run = (*cursor)->next();
    if (!run) {
      ADD_FAILURE() << path << ": " << run.error().message();
      return tape;
    }
    if (run->empty()) {
      break;
    }
    for (const Event& event : *run) {
      add(tape.totals, event);
    }
    if (events == Events::kept) {
      tape.events.insert(tape.events.end(), run->begin(), run->end());
    }
  }
  tape.report = (*cursor)->report();
  return tape;
}

std::vector<Tape> read_tapes(const std::vector<std::filesystem::path>& paths, Events events) {
  std::vector<Tape> tapes;
  for (const auto& path : paths) {
    tapes.push_back(read_tape(path, events));
  }
  return tapes;
}

Tape tape_of(const std::vector<std::filesystem::path>& paths, const std::string& program, Events events) {
  std::vector<std::filesystem::path> found;
  std::string others;
  for (const auto& path : paths) {
    const auto reader = format::TapeReader::open(path);
    if (!reader) {
      ADD_FAILURE() << path << ": " << reader.error().message();
    } else if (reader->info().header.program == program) {
      found.push_back(path);
    } else {
      others += " " + reader->info().header.program;
    }
  }
  if (found.size() != 1) {
    ADD_FAILURE() << found.size() << " tapes of " << program << "; others:" << others;
    return {};
  }
  return read_tape(found.front(), events);
}

void expect_sound(const Tape& tape) {
  SCOPED_TRACE(fmt::format("{} of {}", tape.path.string(), tape.program()));
  const format::TapeInfo& info = tape.info;
  EXPECT_FALSE(info.damage.any()) << ::testing::PrintToString(info.damage.notes);
  EXPECT_NE(info.footer.reason, format::EndReason::unknown);
  EXPECT_EQ(info.footer.events, info.events);
  EXPECT_THAT(info.gaps, ::testing::IsEmpty());
  EXPECT_EQ(info.footer.recorder.own_allocations, 0U);
  EXPECT_EQ(info.footer.recorder.dropped_events, 0U);
  EXPECT_EQ(info.footer.recorder.signal_losses, 0U);
  EXPECT_EQ(info.footer.recorder.lost_threads, 0U);
  EXPECT_EQ(tape.report.contradictions, 0U);
  EXPECT_EQ(tape.report.lost_events, 0U);
  EXPECT_EQ(tape.report.gaps, 0U);
  if (info.header.from_start) {
    EXPECT_EQ(tape.report.unknown_releases, 0U);
  }
}

std::vector<Event> between_marks(const std::vector<Event>& events) {
  std::vector<Event> found;
  enum { before, within, after } state = before;
  format::ThreadIndex thread{};
  for (const Event& e : events) {
    if (state == before && e.released != format::ObjectId::none &&
        e.released_size_bytes == begin_mark_bytes) {
      state = within;
      thread = e.thread;
    } else if (state == within && e.thread == thread) {
      if (e.kind == Kind::malloc && e.size_bytes == end_mark_bytes) {
        state = after;
        break;
      }
      found.push_back(e);
    }
  }
  EXPECT_EQ(state, after) << "the marks are not both on the tape";
  return found;
}

std::vector<std::string> described(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& e : events) {
    std::string arguments;
    if (e.released != format::ObjectId::none || e.has(EventFlag::unknown_release)) {
      arguments += e.has(EventFlag::unknown_release) ? "unknown" : fmt::format("#{}", e.released_size_bytes);
    } else if (e.has(EventFlag::null_argument)) {
      arguments += "null";
    }
    if (format::is_acquire(e.kind) || format::is_realloc(e.kind)) {
      arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", e.size_bytes);
    }
    if (e.alignment != 0) {
      arguments += fmt::format(", align {}", e.alignment);
    }
    lines.push_back(fmt::format("{}({}){}{}", format::kind_name(e.kind), arguments,
                                e.has(EventFlag::failed) ? " failed" : "",
                                e.has(EventFlag::freeing_realloc) ? " freed" : ""));
  }
  return lines;
}

}  // namespace heaptape::e2e
