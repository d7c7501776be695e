// What a recording came to: for people on stderr, and as JSON for programs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "format/base/error.h"
#include "format/tape.h"

namespace heaptape::collector {

struct TapeSummary {           // one recorded process image
  std::filesystem::path path;  // empty: no tape was kept
  std::string program;         // name for people
  std::string executable;
  pid_t pid = 0;
  bool root = false;    // the process that was started here
  bool forked = false;  // the child of a recorded process, without an exec since
  format::TapeFooter footer;
  std::uint64_t threads = 0;
  std::uint64_t tape_bytes = 0;
  std::uint64_t damaged_rings = 0;
  std::string failure;  // why recording stopped early; empty: it did not
};

struct RecordingSummary {
  std::vector<TapeSummary> tapes;     // in order of start
  std::vector<std::string> warnings;  // already printed
  std::uint64_t refused = 0;          // processes that were not recorded (--no-follow)
  std::int64_t duration_ns = 0;
  double recorder_cpu_seconds = 0.0;
  double program_cpu_seconds = 0.0;
  int program_status = 0;
  bool program_ended = false;
  bool nothing_recorded = false;    // no event of any process
  bool program_unrecorded = false;  // it went on as a program that could not be recorded
  bool any_failed = false;          // some process was not recorded, or not to its end

  [[nodiscard]] std::uint64_t events() const noexcept;
  // Index of the tape with most events; tapes.size(): none.
  [[nodiscard]] std::size_t largest() const noexcept;
};

[[nodiscard]] std::string to_text(const RecordingSummary& summary);
[[nodiscard]] std::string to_json(const RecordingSummary& summary);
[[nodiscard]] format::Result<void> write_json(const RecordingSummary& summary, const std::string& path);

}  // namespace heaptape::collector
