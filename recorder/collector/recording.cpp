#include "recorder/collector/recording.h"

#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "recorder/collector/host.h"
#include "recorder/collector/program.h"

namespace heaptape::collector {

using format::EndReason;

namespace {

constexpr std::int64_t millisecond_ns = 1'000'000;
constexpr std::int64_t second_ns = 1'000 * millisecond_ns;

// A watermark at least so often: bounds what the merge must hold, and what a killed collector loses.
constexpr std::uint64_t events_per_watermark = 1'000'000;
constexpr std::int64_t watermark_interval_ns = second_ns;

constexpr std::int64_t first_sample_interval_ns = 10 * millisecond_ns;
constexpr std::uint64_t samples_per_interval = 1000;  // then the interval doubles
constexpr std::int64_t orphan_interval_ns = second_ns;
constexpr std::uint64_t busy_words = ring::ring_words / 4;

// Soon after the start, then at most every second: 10 ms, 20 ms, 40 ms, ... of age.
std::int64_t next_look(std::int64_t age_ns) {
  return age_ns + std::clamp(age_ns, first_sample_interval_ns, second_ns);
}

std::uint64_t own_file_limit_bytes() {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

format::Result<std::unique_ptr<Recording>> Recording::prepare(RecordingContext& context, pid_t pid,
                                                              const ring::Hello& hello) {
  const ClockPair start = clock_pair();
  const bool sequence = context.clock == format::ClockSource::sequence;
  auto segment = Segment::create(
      {.ring_count = ring_count_within(hello.address_space_limit_bytes, own_file_limit_bytes()),
       .clock = context.clock,
       .stacks = context.stacks,
       .overflow = context.overflow,
       .start_tick = sequence ? 1 : start.tick});
  if (!segment) {
    return format::Failure(std::move(segment).error());
  }
  std::unique_ptr<Recording> r(new Recording(context, *std::move(segment)));
  r->pidfd_ = open_pidfd(pid);
  if (!r->pidfd_) {
    return format::failure(format::ExitCode::system, "process {} is gone", pid);
  }
  r->start_ = {sequence ? 1 : start.tick, start.ns};
  r->started_unix_ns_ = unix_ns();
  r->header_pid_ = pid;
  r->parent_pid_ = parent_of(pid);
  r->forked_ = hello.origin == ring::Origin::forked;
  r->same_pid_namespace_ = hello.pid == pid;
  r->program_ = program_name(pid);
  r->executable_path_ = executable_path(pid);
  r->executable_ = executable_identity(pid);
  r->arguments_ = command_line(pid);
  r->first_mappings_ = file_mappings(pid);
  r->sample_interval_ns_ = first_sample_interval_ns;
  return r;
}

format::TapeHeader Recording::make_header() const {
  format::TapeHeader header = host_header();
  if (::getrandom(header.tape_id.data(), sizeof header.tape_id, 0) < 0) {
    header.tape_id = {started_unix_ns_, static_cast<std::uint64_t>(header_pid_)};
  }
  header.program = executable_path_;
  header.arguments = arguments_;
  header.pid = static_cast<std::uint32_t>(header_pid_);
  header.parent_pid = static_cast<std::uint32_t>(parent_pid_);
  header.started_unix_ns = started_unix_ns_;
  header.clock = context_->clock;
  header.start_tick = start_.tick;
  header.ticks_per_second = context_->clock == format::ClockSource::tsc ? context_->ticks_per_second : 0.0;
  header.stacks = context_->stacks;
  header.allocator = modules_.allocator();
  header.from_start = !forked_;
  header.source = "recorded";
  return header;
}

format::Result<void> Recording::begin(const std::filesystem::path& path) {
  path_ = path;
  const std::vector<format::ModuleInfo> modules = modules_.update(header_pid_, first_mappings_);
  first_mappings_ = {};
  auto writer = format::TapeWriter::create(path, make_header());
  if (!writer) {
    fail(writer.error());
    return format::Failure(std::move(writer).error());
  }
  writer_.emplace(*std::move(writer));
  drain_.emplace(segment_, threads_, *writer_);
  if (auto written = writer_->modules(modules); !written) {
    fail(written.error());
    return written;
  }
  return {};
}

std::uint64_t Recording::tick_of(const ClockPair& now) const noexcept {
  return context_->clock == format::ClockSource::tsc
             ? now.tick
             : segment_.control().sequence.load(std::memory_order_relaxed);
}

bool Recording::pass() {
  if (!writer_) {
    return false;
  }
  auto busy = try_pass(clock_pair());
  if (!busy) {
    fail(busy.error());
    return false;
  }
  return *busy;
}

format::Result<bool> Recording::try_pass(const ClockPair& now) {
  const std::int64_t age_ns = now.ns - start_.ns;
  const format::Watermark mark{tick_of(now), age_ns};
  segment_.control().heartbeat.fetch_add(1, std::memory_order_relaxed);
  segment_.advance_clock();
  segment_.wake_waiting(segment_.keep_reserve());
  const std::vector<std::uint32_t> orphans = find_orphans(age_ns);
  const auto drained = drain_->pass(now.ns);
  if (!drained) {
    return format::Failure(drained.error());
  }
  drain_->take_back(orphans, now.ns);
  segment_.wake_waiting(drained->rings);
  events_ += drained->events;
  HEAPTAPE_TRY(write_outside_view(age_ns));
  // The clock of a sequence tells nothing of idle times: only steady watermarks do.
  const bool news = events_ != events_at_watermark_ || context_->clock == format::ClockSource::sequence;
  if (events_ - events_at_watermark_ >= events_per_watermark ||
      (news && age_ns - last_watermark_ns_ >= watermark_interval_ns)) {
    HEAPTAPE_TRY(write_watermark(mark));
  }
  return drained->fullest_words >= busy_words;
}

std::vector<std::uint32_t> Recording::find_orphans(std::int64_t age_ns) {
  const bool all = age_ns >= next_orphans_ns_;
  if (all) {
    next_orphans_ns_ = age_ns + orphan_interval_ns;
  }
  const auto among = all ? Drain::Among::all : Drain::Among::ending;
  if (same_pid_namespace_) {
    return drain_->orphans(
        among, [this](std::uint32_t tid) { return thread_exists(header_pid_, static_cast<pid_t>(tid)); });
  }
  std::vector<std::uint32_t> living;  // as the program numbers them; read when somebody asks
  return drain_->orphans(among, [&](std::uint32_t tid) {
    if (living.empty()) {
      living = threads_by_inner_number(header_pid_);
    }
    return living.empty() || std::ranges::find(living, tid) != living.end();
  });
}

void Recording::sample_memory(std::int64_t age_ns) {
  const auto use = memory_use(header_pid_);
  if (!use) {
    return;
  }
  const format::ResidentSample sample{age_ns, use->resident_bytes, use->anonymous_bytes};
  const auto same = [&](const format::ResidentSample& s) {
    return s.resident_bytes == sample.resident_bytes && s.anonymous_bytes == sample.anonymous_bytes;
  };
  const std::size_t n = unsaved_samples_.size();
  if (n >= 2 && same(unsaved_samples_[n - 1]) && same(unsaved_samples_[n - 2])) {
    unsaved_samples_.back() = sample;  // the first and the last of equal ones say it all
    return;
  }
  unsaved_samples_.push_back(sample);
  samples_ += 1;
  if (samples_ % samples_per_interval == 0) {
    sample_interval_ns_ *= 2;
  }
}

format::Result<void> Recording::write_outside_view(std::int64_t age_ns) {
  if (age_ns >= next_sample_ns_) {
    next_sample_ns_ = age_ns + sample_interval_ns_;
    sample_memory(age_ns);
  }
  if (age_ns >= next_names_ns_) {
    next_names_ns_ = next_look(age_ns);
    if (same_pid_namespace_) {
      threads_.read_names(header_pid_);
    }
  }
  if (age_ns >= next_modules_ns_) {
    next_modules_ns_ = next_look(age_ns);
    if (const auto fresh = modules_.update(header_pid_); !fresh.empty()) {
      HEAPTAPE_TRY(writer_->modules(fresh));
    }
  }
  return {};
}

format::Result<void> Recording::write_watermark(const format::Watermark& mark) {
  for (const format::ThreadInfo& info : threads_.take_unsaved()) {
    HEAPTAPE_TRY(writer_->thread(info));
  }
  if (!unsaved_samples_.empty()) {
    HEAPTAPE_TRY(writer_->resident(unsaved_samples_));
    unsaved_samples_.clear();
  }
  events_at_watermark_ = events_;
  last_watermark_ns_ = mark.time_ns;
  return writer_->watermark(mark);
}

format::Result<void> Recording::end_tape(EndReason reason, std::int32_t value) {
  constexpr int most_passes = 4;  // one suffices for a process that is gone
  ClockPair now = clock_pair();
  for (int i = 0; i < most_passes; ++i) {
    now = clock_pair();
    const auto drained = drain_->pass(now.ns);
    if (!drained) {
      return format::Failure(drained.error());
    }
    events_ += drained->events;
    if (drained->events == 0) {
      break;
    }
  }
  const std::int64_t age_ns = now.ns - start_.ns;
  HEAPTAPE_TRY(write_watermark({tick_of(now), age_ns}));
  footer_.reason = reason;
  footer_.value = value;
  footer_.duration_ns = age_ns;
  footer_.events = writer_->events_written();
  footer_.recorder = segment_.stats();
  return writer_->finish(footer_);
}

void Recording::finish(EndReason reason, std::int32_t value) {
  if (!writer_) {
    return;
  }
  if (reason == EndReason::stopped) {
    segment_.stop();
  }
  if (auto ended = end_tape(reason, value); !ended) {
    fail(ended.error());
    return;
  }
  tape_bytes_ = writer_->bytes_written();
}

void Recording::fail(const format::Error& error) {
  segment_.stop();
  failure_ = error.message();
  footer_.reason = EndReason::unknown;
  footer_.duration_ns = monotonic_ns() - start_.ns;
  footer_.recorder = segment_.stats();
  if (writer_) {
    footer_.events = writer_->events_written();
    tape_bytes_ = writer_->bytes_written();
  }
  drain_.reset();
  writer_.reset();
}

void Recording::abandon() {
  segment_.stop();
  drain_.reset();
  writer_.reset();
}

TapeSummary Recording::summary() const {
  TapeSummary s;
  s.path = path_;
  s.program = program_;
  s.executable = executable_path_;
  s.pid = header_pid_;
  s.forked = forked_;
  s.footer = footer_;
  s.threads = threads_.count();
  s.tape_bytes = tape_bytes_;
  s.damaged_rings = drain_ ? drain_->damaged_rings() : 0;
  s.failure = failure_;
  return s;
}

}  // namespace heaptape::collector
