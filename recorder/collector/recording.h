// The recording of one process image: its rings, its tape, and what is seen of it from outside.
//
// Life: `prepare` while the program waits for our welcome (facts that exec or exit would take away),
// `begin` once it has mapped the rings, `pass` every millisecond, `finish` once. A failure of the
// tape (disk full) ends the recording, never the program: its rings are switched off, `failure`
// says why, and the tape is readable up to there. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/descriptor.h"
#include "format/tape.h"
#include "format/writer.h"
#include "recorder/collector/clock.h"
#include "recorder/collector/drain.h"
#include "recorder/collector/modules.h"
#include "recorder/collector/proc.h"
#include "recorder/collector/segment.h"
#include "recorder/collector/summary.h"
#include "recorder/collector/threads.h"

namespace heaptape::collector {

// The same for all processes of one recording.
struct RecordingContext {
  format::ClockSource clock = format::ClockSource::tsc;
  double ticks_per_second = 0.0;
  format::StackMode stacks = format::StackMode::none;
  Overflow overflow = Overflow::block;
  std::string preload_path;
  ElfCache files;
};

class Recording {
 public:
  // Errors: system (no memory for rings, or the process is gone).
  [[nodiscard]] static format::Result<std::unique_ptr<Recording>> prepare(RecordingContext& context,
                                                                          pid_t pid,
                                                                          const ring::Hello& hello);

  // Creates the tape. On failure the program is told to stop recording.
  [[nodiscard]] format::Result<void> begin(const std::filesystem::path& path);
  [[nodiscard]] bool begun() const noexcept { return writer_.has_value(); }

  // One pass over rings, clock, samples and whatever else is due. True: call again soon, rings fill up.
  [[nodiscard]] bool pass();

  // Reads what is left, and ends the tape. `stopped` switches the program's recording off first.
  void finish(format::EndReason reason, std::int32_t value);
  // No tape is wanted: for an image that never got ready.
  void abandon();

  [[nodiscard]] pid_t pid() const noexcept { return header_pid_; }
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }
  [[nodiscard]] const std::string& program() const noexcept { return program_; }
  [[nodiscard]] const Segment& segment() const noexcept { return segment_; }
  [[nodiscard]] std::uint64_t executable() const noexcept { return executable_; }  // identity, see proc.h
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  void renamed(std::filesystem::path path) { path_ = std::move(path); }
  [[nodiscard]] TapeSummary summary() const;

 private:
  Recording(RecordingContext& context, Segment segment)
      : context_(&context), segment_(std::move(segment)), modules_(context.preload_path, context.files) {}

  [[nodiscard]] format::Result<bool> try_pass(const ClockPair& now);
  [[nodiscard]] format::Result<void> write_outside_view(std::int64_t now_ns);
  [[nodiscard]] format::Result<void> write_watermark(const format::Watermark& mark);
  [[nodiscard]] format::Result<void> end_tape(format::EndReason reason, std::int32_t value);
  [[nodiscard]] std::vector<std::uint32_t> find_orphans(std::int64_t now_ns);
  [[nodiscard]] format::TapeHeader make_header() const;
  void sample_memory(std::int64_t now_ns);
  void fail(const format::Error& error);
  [[nodiscard]] std::uint64_t tick_of(const ClockPair& now) const noexcept;

  const RecordingContext* context_;
  Segment segment_;
  Threads threads_;
  Modules modules_;
  format::Descriptor pidfd_;
  std::optional<format::TapeWriter> writer_;
  std::optional<Drain> drain_;  // of writer_

  pid_t header_pid_ = 0;
  pid_t parent_pid_ = 0;
  bool forked_ = false;
  bool same_pid_namespace_ = true;  // thread ids mean the same to us as to the program
  std::string program_;
  std::string executable_path_;
  std::uint64_t executable_ = 0;
  std::vector<std::string> arguments_;
  std::vector<Mapping> first_mappings_;
  std::filesystem::path path_;
  std::string failure_;
  format::TapeFooter footer_;
  std::uint64_t tape_bytes_ = 0;

  ClockPair start_;
  std::uint64_t started_unix_ns_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t events_at_watermark_ = 0;
  std::int64_t last_watermark_ns_ = 0;
  // When to look at the process from outside again; intervals grow with its age.
  std::int64_t next_sample_ns_ = 0;
  std::int64_t next_names_ns_ = 0;
  std::int64_t next_modules_ns_ = 0;
  std::int64_t next_orphans_ns_ = 0;
  std::int64_t sample_interval_ns_ = 0;
  std::uint64_t samples_ = 0;
  std::vector<format::ResidentSample> unsaved_samples_;
};

}  // namespace heaptape::collector
