#include "recorder/collector/recordings.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace heaptape::collector {

namespace fs = std::filesystem;
using format::EndReason;

namespace {

// How long a process may be another program without reporting: loading it takes a while.
constexpr std::int64_t patience_ns = 500'000'000;

bool has_ended(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

bool is_descendant(pid_t pid, pid_t ancestor) {
  constexpr int deepest = 1000;
  for (int i = 0; i < deepest && pid > 1; ++i) {
    if (pid == ancestor) {
      return true;
    }
    pid = parent_of(pid);
  }
  return false;
}

const char* why_not_ready(ring::ReadyStatus status) {
  switch (status) {
    case ring::ReadyStatus::map_failed:
      return "it has no address space for the rings (ulimit -v?)";
    case ring::ReadyStatus::layout_mismatch:
      return "its libheaptape_preload.so is of another version";
    case ring::ReadyStatus::no_descriptor:
      return "it has no free file descriptor (ulimit -n?)";
    case ring::ReadyStatus::mapped:
      break;
  }
  return "it gave up connecting (is the machine overloaded?)";
}

}  // namespace

void Recordings::greet(Server& server, const PeerMessage& message) {
  const bool foreign = message.uid != ::geteuid() && !is_descendant(message.pid, root_);
  if (foreign || (!follow_ && message.pid != root_)) {
    refused_ += foreign ? 0 : 1;
    known_[message.pid] += 1;
    server.refuse(message.peer, ring::WelcomeStatus::refused);
    return;
  }
  auto recording = Recording::prepare(*context_, message.pid, message.hello);
  if (!recording) {
    notes_->warn("process {} is not recorded: {}", message.pid, recording.error().message());
    failures_ += 1;
    server.refuse(message.peer, ring::WelcomeStatus::refused);
    return;
  }
  server.accept(message.peer, (*recording)->segment().welcome(), (*recording)->segment().fd());
  greeted_[message.peer] = *std::move(recording);
}

void Recordings::ready(const PeerMessage& message) {
  auto greeted = greeted_.extract(message.peer);
  if (greeted.empty()) {
    return;
  }
  std::unique_ptr<Recording> recording = std::move(greeted.mapped());
  if (message.ready != ring::ReadyStatus::mapped) {
    // One that merely went away may have been killed; one that gave a reason is told of in any case.
    if (message.ready != ring::ReadyStatus{} || !has_ended(recording->pidfd())) {
      notes_->warn("{} (pid {}) is not recorded: {}", recording->program(), message.pid,
                   why_not_ready(message.ready));
      failures_ += 1;
    }
    recording->abandon();
    return;
  }
  if (auto old = active_.extract(message.pid); !old.empty()) {
    finish(std::move(old.mapped().recording), EndReason::replaced, 0);
  }
  known_[message.pid] += 1;
  const fs::path path = name_for(*recording);
  std::error_code ignored;
  if (fs::is_regular_file(fs::symlink_status(path, ignored))) {
    fs::remove(path, ignored);  // a tape of that name that someone still reads or writes stays whole
  }
  names_.take(path, message.pid);
  if (!recording->begin(path)) {
    finish(std::move(recording), EndReason::stopped, 0);
    return;
  }
  active_[message.pid].recording = std::move(recording);
}

// The name of the process; an earlier image of the same process makes way for this one.
fs::path Recordings::name_for(const Recording& recording) {
  fs::path path = recording.pid() == root_ ? names_.plain(recording.pid(), recording.program())
                                           : names_.other(recording.pid(), recording.program());
  if (names_.holder(path) != recording.pid()) {
    return names_.untaken(path);
  }
  const auto old = std::ranges::find(ended_, path, &TapeSummary::path);
  if (old == ended_.end() || old->footer.reason != EndReason::replaced) {
    return names_.untaken(path);  // an old process of the same number
  }
  rename(*old, names_.replaced(path));
  return path;
}

void Recordings::rename(TapeSummary& tape, const fs::path& to) {
  std::error_code error;
  fs::rename(tape.path, to, error);
  if (error) {
    notes_->warn("{} could not be renamed to {}: {}", tape.path.native(), to.native(), error.message());
    return;
  }
  names_.release(tape.path);
  names_.take(to, tape.pid);
  tape.path = to;
}

Recordings::Pass Recordings::pass() {
  Pass sum;
  for (auto item = active_.begin(); item != active_.end();) {
    auto here = item++;
    Recording& recording = *here->second.recording;
    const std::uint64_t before = recording.events();
    sum.busy = recording.pass() || sum.busy;
    sum.events += recording.events() - before;
    if (!recording.failure().empty()) {
      auto failed = active_.extract(here);
      finish(std::move(failed.mapped().recording), EndReason::stopped, 0);
    }
  }
  return sum;
}

std::vector<pid_t> Recordings::find_gone() const {
  std::vector<pid_t> gone;
  for (const auto& [pid, active] : active_) {
    if (has_ended(active.recording->pidfd())) {
      gone.push_back(pid);
    }
  }
  return gone;
}

void Recordings::end_gone(const std::vector<pid_t>& gone,
                          const std::function<std::optional<ProgramEnd>()>& end_of_root) {
  for (const pid_t pid : gone) {
    auto node = active_.extract(pid);
    if (node.empty()) {
      continue;
    }
    Active& active = node.mapped();
    if (active.changed_since_ns != 0) {
      notes_->warn("{} (pid {}) went on as another program, which was not recorded",
                   active.recording->program(), pid);
      root_went_unrecorded_ = root_went_unrecorded_ || pid == root_;
      finish(std::move(active.recording), EndReason::replaced, 0);
      continue;
    }
    const auto end = pid == root_ ? end_of_root() : end_of(pid, active.recording->pidfd());
    const EndReason reason = end && end->killed ? EndReason::killed : EndReason::exited;
    finish(std::move(active.recording), reason, end ? end->value : -1);
  }
}

void Recordings::end_replaced(std::int64_t now_ns) {
  for (auto item = active_.begin(); item != active_.end();) {
    auto here = item++;
    Active& active = here->second;
    const std::uint64_t identity = executable_identity(here->first);
    if (identity == 0 || identity == active.recording->executable()) {
      active.changed_since_ns = identity == 0 ? active.changed_since_ns : 0;
      continue;
    }
    if (active.changed_since_ns == 0) {
      active.changed_since_ns = now_ns;
    }
    if (now_ns - active.changed_since_ns < patience_ns) {
      continue;
    }
    const std::string path = executable_path(here->first);
    const std::string reason = why_not_recordable(path);
    notes_->warn("{} (pid {}) went on as {}, which is not recorded: it {}", active.recording->program(),
                 here->first, path, reason.empty() ? "got no LD_PRELOAD (env -i, sudo?)" : reason);
    root_went_unrecorded_ = root_went_unrecorded_ || here->first == root_;
    auto gone = active_.extract(here);
    finish(std::move(gone.mapped().recording), EndReason::replaced, 0);
  }
}

void Recordings::stop_all() {
  for (auto& [peer, recording] : greeted_) {
    recording->abandon();
  }
  greeted_.clear();
  while (!active_.empty()) {
    auto item = active_.extract(active_.begin());
    finish(std::move(item.mapped().recording), EndReason::stopped, 0);
  }
}

void Recordings::finish(std::unique_ptr<Recording> recording, EndReason reason, std::int32_t value) {
  if (recording->failure().empty()) {
    recording->finish(reason, value);
  }
  if (!recording->failure().empty()) {
    failures_ += 1;
    notes_->warn("recording of {} (pid {}) ends here: {}; the program runs on", recording->program(),
                 recording->pid(), recording->failure());
  }
  TapeSummary tape = recording->summary();
  tape.root = recording->pid() == root_;
  if (reason == EndReason::replaced && tape.footer.events == 0) {
    std::error_code ignored;
    fs::remove(tape.path, ignored);
    names_.release(tape.path);
    return;
  }
  if (std::error_code ignored; !fs::exists(tape.path, ignored)) {
    tape.path.clear();  // could not even be created
  }
  ended_.push_back(std::move(tape));
}

void Recordings::settle_names() {
  const auto root = std::find_if(ended_.rbegin(), ended_.rend(), [](const TapeSummary& t) { return t.root; });
  if (root == ended_.rend()) {
    return;
  }
  TapeSummary* launched = nullptr;
  for (TapeSummary& tape : ended_) {
    if (is_launcher_of(*root, tape) &&
        (launched == nullptr || tape.footer.events > launched->footer.events)) {
      launched = &tape;
    }
  }
  const fs::path plain = names_.plain(root->pid, root->program);
  if (launched == nullptr || root->path != plain || names_.other(root->pid, root->program) == plain) {
    return;
  }
  rename(*root, names_.untaken(names_.other(root->pid, root->program)));
  rename(*launched, names_.untaken(names_.plain(launched->pid, launched->program)));
}

bool is_launcher_of(const TapeSummary& root, const TapeSummary& started) {
  constexpr std::array wrappers = {"sh",   "dash",    "bash",   "zsh",    "ksh",     "fish",     "busybox",
                                   "env",  "nice",    "ionice", "nohup",  "timeout", "time",     "taskset",
                                   "chrt", "setsid",  "stdbuf", "strace", "ltrace",  "setpriv",  "runuser",
                                   "sudo", "unshare", "xargs",  "script", "numactl", "xvfb-run", "faketime"};
  constexpr std::uint64_t little = 20'000;
  constexpr std::uint64_t much = 10'000;
  if (started.root || started.forked || started.path.empty() ||
      started.footer.reason == EndReason::replaced) {
    return false;
  }
  const std::string file = fs::path(root.executable).filename();
  const std::uint64_t events = started.footer.events;
  const bool is_wrapper = std::ranges::find(wrappers, file) != wrappers.end();
  return (is_wrapper && events > root.footer.events) ||
         (root.footer.events < little && events >= much && events / 10 >= root.footer.events);
}

std::uint64_t Recordings::events() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [pid, active] : active_) {
    sum += active.recording->events();
  }
  for (const TapeSummary& tape : ended_) {
    sum += tape.footer.events;
  }
  return sum;
}

std::string Recordings::active_programs() const {
  std::string text;
  for (const auto& [pid, active] : active_) {
    text += fmt::format("{}{} (pid {})", text.empty() ? "" : ", ", active.recording->program(), pid);
  }
  return text;
}

}  // namespace heaptape::collector
