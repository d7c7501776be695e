// What a test asks of a tape: totals by kind, the merged events, and whether it is sound.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "format/cursor.h"
#include "format/event.h"
#include "format/reader.h"

namespace heaptape::e2e {

struct CallSums {
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;
  std::uint64_t bytes = 0;  // requested, of the calls that succeeded
  std::uint64_t nulls = 0;  // releases and reallocs of NULL
  friend bool operator==(const CallSums&, const CallSums&) = default;
};

// By the kind's name in JSON; kinds that never occur are absent.
using Totals = std::map<std::string, CallSums>;
void add(Totals& totals, const format::Event& event);
void PrintTo(const CallSums& sums,
             std::ostream* out);  // NOLINT(readability-identifier-naming): GoogleTest's name

// The totals that the counting preload wrote into `file`; `program` gets its /proc/self/exe.
[[nodiscard]] Totals counted_totals(const std::filesystem::path& file, std::string* program = nullptr);

struct Tape {
  std::filesystem::path path;
  format::TapeInfo info;
  format::MergeReport report;
  std::vector<format::Event> events;  // empty where the test said `events::summed`
  Totals totals;

  [[nodiscard]] std::string program() const { return info.header.program; }
  // How many events are of `kind` with that size.
  [[nodiscard]] std::uint64_t count(format::Kind kind, std::uint64_t size_bytes) const;
  // How many releases are of an object of that size.
  [[nodiscard]] std::uint64_t released(std::uint64_t size_bytes) const;
};

enum class Events { kept, summed };

// Reads the whole tape; a failure to read is a test failure, and yields an empty tape.
[[nodiscard]] Tape read_tape(const std::filesystem::path& path, Events events = Events::kept);
[[nodiscard]] std::vector<Tape> read_tapes(const std::vector<std::filesystem::path>& paths,
                                           Events events = Events::kept);
// The one tape whose program is `program` (a path); a test failure where there is none or several.
[[nodiscard]] Tape tape_of(const std::vector<std::filesystem::path>& paths, const std::string& program,
                           Events events = Events::kept);

// A complete recording: undamaged, nothing lost, no contradiction, no allocation of the recorder's
// own; and no unknown release where it was recorded from the start.
void expect_sound(const Tape& tape);

// The events of the thread that made the marks (guests/guest.h), between the two.
[[nodiscard]] std::vector<format::Event> between_marks(const std::vector<format::Event>& events);

// One line per event: "malloc(101)", "posix_memalign(301, 64)", "free(#101)", "malloc(5) failed".
// A release names the size of the object that it released.
[[nodiscard]] std::vector<std::string> described(const std::vector<format::Event>& events);

}  // namespace heaptape::e2e
