#include "recorder/collector/collector.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "recorder/collector/clock.h"
#include "recorder/collector/notes.h"
#include "recorder/collector/preload_library.h"
#include "recorder/collector/program.h"
#include "recorder/collector/recordings.h"
#include "recorder/collector/server.h"
#include "recorder/collector/signals.h"
#include "recorder/collector/tape_names.h"

namespace heaptape::collector {

namespace fs = std::filesystem;
using format::Failure;
using format::Result;

namespace {

constexpr std::int64_t millisecond_ns = 1'000'000;
constexpr int pass_ms = 1;
// Where nothing has happened for a while, passes cost more than they bring. What a program can write
// until the next one still fits its reserve of rings.
constexpr std::int64_t idle_ns = 500 * millisecond_ns;
constexpr int idle_pass_ms = 4;
constexpr std::int64_t look_interval_ns = 20 * millisecond_ns;
constexpr std::int64_t silence_ns = 900 * millisecond_ns;  // then: why does nobody report?
constexpr std::int64_t heir_patience_ns = 1000 * millisecond_ns;
constexpr std::int64_t waiting_note_ns = 500 * millisecond_ns;

// What can be known of FILE before the program runs: better an error now than no tape later.
Result<void> check_output(const std::string& pattern) {
  const fs::path path(pattern);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (folder.native().find('%') == std::string::npos && ::access(folder.c_str(), W_OK | X_OK) != 0) {
    return format::failure(errno == ENOENT ? format::ExitCode::usage : format::ExitCode::system,
                           "-o {}: cannot write in {}: {}", pattern, folder.native(),
                           std::generic_category().message(errno));
  }
  struct stat s {};
  if (::stat(pattern.c_str(), &s) == 0 && !S_ISREG(s.st_mode)) {
    return format::failure(format::ExitCode::usage, "-o {}: not a regular file; a tape needs one", pattern);
  }
  return {};
}

// The program has got its limits already; ours may go as far as we are allowed.
void raise_own_limits() {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      ::setrlimit(resource, &limit);
    }
  }
}

// A program that waits for us must not keep us from running; where we may not, we may not.
void raise_own_priority() { ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) - 10); }

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}
double cpu_seconds(const rusage& usage) { return seconds(usage.ru_utime) + seconds(usage.ru_stime); }

// The loop and all that it watches.
class Loop {
 public:
  Loop(const RecordOptions& options, std::string path, Server server, Signals& signals, Program program,
       Recordings recordings, Notes& notes)
      : path_(std::move(path)),
        server_(std::move(server)),
        signals_(&signals),
        program_(std::move(program)),
        recordings_(std::move(recordings)),
        notes_(&notes),
        follow_(options.follow) {}

  RecordingSummary run();

 private:
  [[nodiscard]] bool wait(bool busy);
  void take_messages();
  void handle_signals();
  void explain_silence();
  void tell_whom_we_wait_for();
  [[nodiscard]] bool all_ended();
  [[nodiscard]] bool ended() const noexcept { return end_.has_value(); }

  std::string path_;
  Server server_;
  Signals* signals_;
  Program program_;
  Recordings recordings_;
  Notes* notes_;
  bool follow_;

  std::vector<pollfd> descriptors_;
  std::int64_t started_ns_ = monotonic_ns();
  std::int64_t now_ns_ = started_ns_;
  std::int64_t ended_ns_ = 0;
  std::int64_t last_event_ns_ = 0;
  std::int64_t next_look_ns_ = 0;
  std::int64_t next_heirs_ns_ = 0;
  std::optional<ProgramEnd> end_;
  bool told_silence_ = false;
  bool told_waiting_ = false;
  int signals_passed_on_ = 0;
  bool stop_ = false;
};

// Until something is to be done besides the next pass (true), or that is due.
bool Loop::wait(bool busy) {
  descriptors_.clear();
  descriptors_.push_back({signals_->fd(), POLLIN, 0});
  server_.append_descriptors(descriptors_);
  recordings_.append_descriptors(descriptors_);
  if (!ended()) {
    descriptors_.push_back({program_.pidfd(), POLLIN, 0});
  }
  // Rings are polled, not waited for: the program must not make a system call to wake us. Without
  // any, descriptors are all there is.
  int timeout_ms = ended() ? 2 : 50;
  if (recordings_.any_active()) {
    const bool idle = now_ns_ - last_event_ns_ > idle_ns;
    timeout_ms = busy ? 0 : idle ? idle_pass_ms : pass_ms;
  }
  const bool news = ::poll(descriptors_.data(), descriptors_.size(), timeout_ms) > 0;
  now_ns_ = monotonic_ns();
  return news;
}

void Loop::take_messages() {
  for (const PeerMessage& message : server_.take_messages()) {
    if (message.what == PeerMessage::What::hello) {
      recordings_.greet(server_, message);
    } else {
      recordings_.ready(message);
    }
  }
}

void Loop::handle_signals() {
  while (const auto signal = signals_->next()) {
    if (ended()) {
      stop_ = true;
    } else if (!signal->from_terminal) {
      stop_ = signals_passed_on_ != 0;
      signals_passed_on_ += 1;
      program_.send_signal(signal->number);
    }
  }
}

// Nothing was recorded: says why, within a second or at the program's end, once.
void Loop::explain_silence() {
  const bool none_begun = !recordings_.any_begun();
  if (told_silence_ || (!none_begun && recordings_.events() != 0) ||
      (!ended() && now_ns_ - started_ns_ < silence_ns)) {
    return;
  }
  const std::string now = ended() ? std::string() : executable_path(program_.pid());
  std::string reason = why_not_recordable(now.empty() ? path_ : now);
  if (!none_begun && reason.empty()) {
    return;  // it reports, and has not allocated yet
  }
  told_silence_ = true;
  if (reason.empty()) {
    reason = "did not report here (was LD_PRELOAD taken away, as env -i and sudo do?)";
  }
  notes_->warn("recorded nothing{}: {} {}", ended() ? "" : " yet", now.empty() ? path_ : now, reason);
}

void Loop::tell_whom_we_wait_for() {
  if (ended() && !told_waiting_ && now_ns_ - ended_ns_ > waiting_note_ns && recordings_.any_active()) {
    told_waiting_ = true;
    notes_->note("{} has ended; still recording {}; Ctrl-C ends the recording", path_,
                 recordings_.active_programs());
  }
}

// The program, all recorded processes, and those that were started but have not reported yet.
bool Loop::all_ended() {
  if (!ended() || !recordings_.empty()) {
    return false;
  }
  if (!follow_ || signals_passed_on_ != 0 || now_ns_ - ended_ns_ > heir_patience_ns) {
    return true;
  }
  if (now_ns_ < next_heirs_ns_) {
    return false;
  }
  next_heirs_ns_ = now_ns_ + look_interval_ns;
  const std::vector<pid_t> heirs = processes_with(server_.environment_entry());
  return std::ranges::all_of(heirs, [&](pid_t heir) { return recordings_.knows(heir); });
}

RecordingSummary Loop::run() {
  bool busy = false;
  while (!stop_) {
    const bool news = wait(busy);
    const bool look = now_ns_ >= next_look_ns_;
    std::vector<pid_t> gone;
    if (news || look) {
      handle_signals();
      if (!ended() && (end_ = program_.poll_end())) {
        ended_ns_ = now_ns_;
      }
      gone = recordings_.find_gone();
      take_messages();
    }
    const Recordings::Pass pass = recordings_.pass();
    busy = pass.busy;
    last_event_ns_ = pass.events != 0 ? now_ns_ : last_event_ns_;
    recordings_.end_gone(gone, [this] { return program_.poll_end(); });
    if (look) {
      next_look_ns_ = now_ns_ + look_interval_ns;
      recordings_.end_replaced(now_ns_);
      explain_silence();
      tell_whom_we_wait_for();
    }
    if (all_ended()) {
      break;
    }
  }
  recordings_.stop_all();
  recordings_.settle_names();
  explain_silence();

  RecordingSummary summary;
  summary.tapes = recordings_.ended();
  summary.refused = recordings_.refused();
  summary.nothing_recorded = told_silence_ && recordings_.events() == 0;
  summary.program_unrecorded = recordings_.root_went_unrecorded();
  summary.any_failed = recordings_.any_failed();
  summary.duration_ns = monotonic_ns() - started_ns_;
  summary.program_ended = ended();
  if (end_) {
    summary.program_status = end_->shell_status();
    summary.program_cpu_seconds = cpu_seconds(end_->usage);
  }
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  summary.recorder_cpu_seconds = cpu_seconds(own);
  summary.warnings = notes_->warnings();
  return summary;
}

}  // namespace

Result<RecordingSummary> record(const RecordOptions& options) {
  if (options.command.empty()) {
    return format::failure(format::ExitCode::usage, "no program to record: put it after --");
  }
  const auto path = find_program(options.command.front(), std::getenv("PATH"));
  if (!path) {
    return Failure(path.error());
  }
  auto names = TapeNames::parse(options.output, std::time(nullptr));
  if (!names) {
    return Failure(std::move(names).error());
  }
  HEAPTAPE_TRY(check_output(options.output));
  const auto library = PreloadLibrary::find(own_executable());
  if (!library) {
    return Failure(library.error());
  }
  auto server = Server::open();
  if (!server) {
    return Failure(std::move(server).error());
  }
  RecordingContext context;
  context.clock = choose_clock();
  context.ticks_per_second = measure_ticks_per_second();
  context.stacks = options.stacks;
  context.overflow = options.overflow;
  context.preload_path = library->file();

  Notes notes(options.quiet);
  Signals signals;
  auto program =
      Program::start(*path, options.command, {library->environment_entry(), server->environment_entry()},
                     signals.for_program());
  if (!program) {
    return Failure(std::move(program).error());
  }
  raise_own_limits();
  if (options.overflow == Overflow::block) {
    raise_own_priority();
  }
  Recordings recordings(std::move(context), *std::move(names), program->pid(), options.follow, notes);
  Loop loop(options, *path, *std::move(server), signals, *std::move(program), std::move(recordings), notes);
  return loop.run();
}

}  // namespace heaptape::collector
