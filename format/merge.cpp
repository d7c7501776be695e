#include "format/merge.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/merge_heads.h"
#include "format/merge_judge.h"
#include "format/merge_output.h"
#include "format/merge_stream.h"

namespace heaptape::format {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t open_reallocs_per_thread = 8;
constexpr std::uint64_t looks_per_event = 16;  // of the judge, on average; recordings need far fewer
constexpr std::ptrdiff_t prefetch_ahead = 6;

}  // namespace

// The life of an event: `add` queues it in its thread's stream. A watermark begins a *phase*: streams
// whose heads may go are put into `heads_`, and `run` takes the earliest again and again. A head that
// must wait leaves `heads_` for `waiters_` and `held_`, and comes back when its address is touched.
struct Merger::State {
  explicit State(const TapeHeader& header) : output(header), judge(header) {}

  void add(ThreadIndex thread, std::vector<RecordedEvent> events);
  void gap(const Gap& gap);
  void damaged();
  void begin_phase(std::uint64_t known_until, std::uint64_t frontier);
  void run(std::size_t wanted);

  std::uint32_t stream_of(ThreadIndex thread);
  [[nodiscard]] bool old(const MergeStream& s) const noexcept {
    return finishing || s.head_epoch() + 2 <= watermarks;
  }
  [[nodiscard]] bool may_go(const MergeStream& s) const noexcept {
    return !s.empty() && (s.head().stamp <= frontier || old(s));
  }

  void run_earliest(std::size_t wanted);
  bool step(MergeStream& s, std::uint32_t self);
  bool step_acquire(MergeStream& s, std::uint32_t self, const RecordedEvent& e);
  bool step_release(MergeStream& s, std::uint32_t self, const RecordedEvent& e);
  bool step_realloc(MergeStream& s, std::uint32_t self, const RecordedEvent& e);
  bool admit_acquire(MergeStream& s, std::uint32_t self, std::uint64_t address, AddressTable::Claim& claim);
  bool rule_on_acquire(MergeStream& s, std::uint32_t self, std::uint64_t address);
  bool admit_release(MergeStream& s, std::uint32_t self, std::uint64_t address);
  void begin_realloc(MergeStream& s, const RecordedEvent& e);
  static std::size_t matching_begin(const MergeStream& s, const RecordedEvent& e);
  void pass_gap(MergeStream& s);

  void hold(MergeStream& s, std::uint32_t self, std::uint64_t address, const Verdict& verdict);
  void release_hold(std::uint32_t stream);
  void wake(std::uint64_t address);
  bool close_cycle(std::uint32_t self);
  void force(std::uint32_t stream);
  bool unstick();
  bool raise_frontier(std::uint64_t stamp);
  bool close_open_reallocs(std::size_t wanted);

  MergeOutput output;
  MergeJudge judge;
  std::vector<MergeStream> streams;
  std::unordered_map<ThreadIndex, std::uint32_t> stream_numbers;
  std::uint32_t latest_stream = 0;    // blocks of one thread often follow each other
  std::vector<std::uint32_t> active;  // streams with events
  std::size_t buffered = 0;
  std::uint64_t steps = 0;

  std::uint64_t watermarks = 0;
  std::uint64_t known_until = 0;  // all that was published before this tick has been read
  std::uint64_t frontier = 0;     // heads up to here may go
  std::uint64_t newest = 0;       // latest stamp emitted
  bool finishing = false;
  std::size_t closing = 0;  // streams whose open reallocs have been told

  MergeHeads heads;
  std::vector<std::uint32_t> woken;                                           // to be put into `heads`
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>> waiters;  // address, stamp, stream
  HeldStreams held;
  HeldStreams held_old;  // those whose head must go in this phase
};

// ---- reading

std::uint32_t Merger::State::stream_of(ThreadIndex thread) {
  if (!streams.empty() && streams[latest_stream].thread() == thread) {
    return latest_stream;
  }
  const auto next = static_cast<std::uint32_t>(streams.size());
  const auto [it, fresh] = stream_numbers.try_emplace(thread, next);
  if (fresh) {
    streams.emplace_back(thread);
  }
  latest_stream = it->second;
  return latest_stream;
}

void Merger::State::add(ThreadIndex thread, std::vector<RecordedEvent> events) {
  run(no_limit);
  if (events.empty()) {
    return;
  }
  for (const RecordedEvent& e : events) {
    if (e.stamp >= newest) {
      break;
    }
    ++output.report.late_events;
  }
  const std::uint32_t number = stream_of(thread);
  MergeStream& s = streams[number];
  buffered += events.size();
  s.push(std::move(events), watermarks);
  if (!s.active) {
    s.active = true;
    active.push_back(number);
  }
}

void Merger::State::gap(const Gap& gap) {
  run(no_limit);
  ++output.report.gaps;
  output.report.lost_events += gap.lost_events;
  MergeStream& s = streams[stream_of(gap.thread)];
  if (s.empty()) {
    pass_gap(s);
  } else {
    s.mark_gap();
  }
}

void Merger::State::damaged() {
  run(no_limit);
  output.damaged();
  for (MergeStream& s : streams) {
    if (s.empty()) {
      pass_gap(s);
    } else {
      s.mark_gap();
    }
  }
}

// From here on the thread's stream misses events.
void Merger::State::pass_gap(MergeStream& s) {
  output.damaged();
  for (OpenRealloc& open : s.open) {
    open.doubtful = true;
  }
}

// ---- phases

void Merger::State::begin_phase(std::uint64_t now_known, std::uint64_t new_frontier) {
  known_until = std::max(known_until, now_known);
  frontier = std::max(frontier, new_frontier);
  judge.begin_phase(known_until, looks_per_event * (buffered + 64));
  waiters.clear();
  held.clear();
  held_old.clear();
  std::size_t kept = 0;
  for (const std::uint32_t number : active) {
    MergeStream& s = streams[number];
    s.blocked = false;
    if (s.empty()) {
      s.active = false;
      continue;
    }
    active[kept++] = number;
    if (may_go(s)) {
      heads.push({s.head().stamp, number});
    }
  }
  active.resize(kept);
}

void Merger::State::run(std::size_t wanted) {
  while (output.ready() < wanted) {
    if (!heads.empty()) {
      run_earliest(wanted);
    } else if (!unstick() && !(finishing && close_open_reallocs(wanted))) {
      return;
    }
  }
}

// Emits from the stream with the earliest head until another one's is earlier.
void Merger::State::run_earliest(std::size_t wanted) {
  const std::uint32_t self = heads.top().stream;
  const MergeHeads::Head second = heads.second();
  MergeStream& s = streams[self];
  for (;;) {
    const std::uint64_t stamp = s.head().stamp;
    if (const RecordedEvent* soon = s.ahead(prefetch_ahead)) {
      output.prefetch(soon->address);
    }
    ++steps;
    if (!step(s, self)) {
      heads.pop();
      break;
    }
    newest = std::max(newest, stamp);
    s.forced = s.was_blocked = false;
    --buffered;
    if (s.pop()) {
      pass_gap(s);
    }
    if (!may_go(s)) {
      heads.pop();
      break;
    }
    const MergeHeads::Head head{s.head().stamp, self};
    if (second < head || !woken.empty() || output.ready() >= wanted) {
      heads.replace_top(head);
      break;
    }
  }
  for (const std::uint32_t stream : woken) {
    heads.push({streams[stream].head().stamp, stream});
  }
  woken.clear();
}

// Nothing can go. True: something can now.
bool Merger::State::unstick() {
  if (held_old.empty()) {
    return false;
  }
  // What must go waits, over some others, for one that lies past the frontier or is nowhere: the root.
  const std::uint32_t earliest = held_old.begin()->second;
  std::uint32_t root = earliest;
  for (std::size_t hops = 0; streams[root].waits_on != MergeStream::nobody; ++hops) {
    const MergeStream& s = streams[root];
    if (!streams[s.waits_on].blocked) {
      if (raise_frontier(s.wanted_stamp)) {
        return true;
      }
      break;
    }
    if (hops > held.size() || !judge.spend(1)) {
      root = earliest;
      break;
    }
    root = s.waits_on;
  }
  force(root);
  return true;
}

bool Merger::State::raise_frontier(std::uint64_t stamp) {
  if (stamp <= frontier || stamp > known_until) {
    return false;
  }
  frontier = stamp;
  for (const std::uint32_t number : active) {
    const MergeStream& s = streams[number];
    if (!s.blocked && may_go(s)) {
      heads.push({s.head().stamp, number});
    }
  }
  steps += active.size();
  return !heads.empty();
}

bool Merger::State::close_open_reallocs(std::size_t wanted) {
  for (; closing < streams.size() && output.ready() < wanted; ++closing) {
    for (const OpenRealloc& open : streams[closing].open) {
      output.unfinished(streams[closing].thread(), open);
    }
    streams[closing].open.clear();
  }
  return closing < streams.size();
}

// ---- one event; false: it is held back

bool Merger::State::step(MergeStream& s, std::uint32_t self) {
  const RecordedEvent& e = s.head();
  if (is_acquire(e.kind)) {
    return step_acquire(s, self, e);
  }
  if (is_release(e.kind)) {
    return step_release(s, self, e);
  }
  if (is_realloc(e.kind)) {
    return step_realloc(s, self, e);
  }
  if (e.kind == Kind::malloc_trim) {
    output.trimmed(s.thread(), e);
  } else {
    ++output.report.lost_events;  // no kind of this version
  }
  return true;
}

bool Merger::State::step_acquire(MergeStream& s, std::uint32_t self, const RecordedEvent& e) {
  if (e.address == 0) {
    output.failed(s.thread(), e);
    return true;
  }
  AddressTable::Claim claim{};
  if (!admit_acquire(s, self, e.address, claim)) {
    return false;
  }
  output.acquired(s.thread(), e, claim, s.was_blocked && claim.fresh && !s.forced);
  wake(e.address);
  return true;
}

bool Merger::State::step_release(MergeStream& s, std::uint32_t self, const RecordedEvent& e) {
  if (e.address == 0) {
    output.null_release(s.thread(), e);
    return true;
  }
  if (!held.empty() && !admit_release(s, self, e.address)) {
    return false;
  }
  output.released(s.thread(), e, s.was_blocked && !s.forced);
  wake(e.address);
  return true;
}

bool Merger::State::step_realloc(MergeStream& s, std::uint32_t self, const RecordedEvent& e) {
  if (e.phase == Phase::begin) {
    if (e.address != 0 && !held.empty() && !admit_release(s, self, e.address)) {
      return false;
    }
    begin_realloc(s, e);
    if (e.address != 0) {
      wake(e.address);
    }
    return true;
  }
  const std::size_t begin = matching_begin(s, e);
  OpenRealloc open;
  if (begin < s.open.size()) {
    open = s.open[begin];
  } else {
    open.begin_lost = true;
  }
  const bool failed = e.phase == Phase::failed;
  const std::uint64_t address = !failed ? e.address : open.object != ObjectId::none ? open.old_address : 0;
  AddressTable::Claim claim{};
  if (address != 0 && !admit_acquire(s, self, address, claim)) {
    return false;
  }
  if (begin < s.open.size()) {
    s.open.erase(s.open.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  const bool repaired = s.was_blocked && !s.forced && (address == 0 || claim.fresh);
  if (failed) {
    output.unmoved(s.thread(), e, open, address != 0 ? &claim : nullptr, repaired);
  } else if (address != 0) {
    output.moved(s.thread(), e, open, claim, repaired);
  } else {
    output.freed(s.thread(), e, open);
  }
  if (address != 0) {
    wake(address);
  }
  return true;
}

void Merger::State::begin_realloc(MergeStream& s, const RecordedEvent& e) {
  if (s.open.size() == open_reallocs_per_thread) {
    output.unfinished(s.thread(), s.open.front());
    s.open.erase(s.open.begin());
  }
  s.open.push_back(output.begun(e, s.was_blocked && !s.forced));
}

// The open realloc that the end belongs to: the latest that asked for the same; else the latest,
// unless what is missing from the thread's stream may have ended that.
std::size_t Merger::State::matching_begin(const MergeStream& s, const RecordedEvent& e) {
  for (std::size_t i = s.open.size(); i-- != 0;) {
    if (s.open[i].kind == e.kind && s.open[i].size_bytes == e.size_bytes) {
      return i;
    }
  }
  return !s.open.empty() && !s.open.back().doubtful ? s.open.size() - 1 : s.open.size();
}

// ---- holding back

bool Merger::State::admit_acquire(MergeStream& s, std::uint32_t self, std::uint64_t address,
                                  AddressTable::Claim& claim) {
  if (!waiters.empty() && !s.forced) {
    // Behind a release of the address that was stamped before and waits for its own acquire.
    for (auto it = waiters.lower_bound({address, 0, 0});
         it != waiters.end() && std::get<0>(*it) == address && std::get<1>(*it) < s.head().stamp; ++it) {
      const std::uint32_t other = std::get<2>(*it);
      const RecordedEvent& ahead = streams[other].head();
      if (is_release(ahead.kind) || (is_realloc(ahead.kind) && ahead.phase == Phase::begin)) {
        hold(s, self, address, {.ruling = Ruling::waits, .stream = other, .stamp = ahead.stamp});
        return !s.blocked && (claim = output.claim(address), true);
      }
      if (!judge.spend(1)) {
        break;
      }
    }
  }
  claim = output.claim(address);
  return claim.fresh || s.forced || rule_on_acquire(s, self, address);
}

bool Merger::State::rule_on_acquire(MergeStream& s, std::uint32_t self, std::uint64_t address) {
  const Verdict verdict = judge.acquire(streams, active, self, address, old(s));
  if (verdict.ruling != Ruling::missing) {
    hold(s, self, address, verdict);
    return !s.blocked;
  }
  return true;
}

// Only while others are held back can a release be too early for its acquire.
bool Merger::State::admit_release(MergeStream& s, std::uint32_t self, std::uint64_t address) {
  if (s.forced || output.live(address)) {
    return true;
  }
  const Verdict verdict = judge.release(streams, held, self, address);
  if (verdict.ruling != Ruling::missing) {
    hold(s, self, address, verdict);
    return !s.blocked;
  }
  return true;
}

// Unless that closes a cycle in which this is the one to go ahead.
void Merger::State::hold(MergeStream& s, std::uint32_t self, std::uint64_t address, const Verdict& verdict) {
  const std::uint64_t stamp = s.head().stamp;
  s.blocked = s.was_blocked = true;
  s.waits_for = address;
  s.waits_on = verdict.ruling == Ruling::waits ? verdict.stream : MergeStream::nobody;
  s.wanted_stamp = verdict.stamp;
  waiters.emplace(address, stamp, self);
  held.emplace(stamp, self);
  if (old(s)) {
    held_old.emplace(stamp, self);
  }
  if (s.waits_on != MergeStream::nobody) {
    close_cycle(self);
  }
}

// Streams that wait for each other in a circle are proof that one of them guessed its release
// wrongly: the acquire with the longest way to it.
bool Merger::State::close_cycle(std::uint32_t self) {
  std::uint32_t wrong = self;
  std::uint64_t longest = 0;
  std::uint32_t at = self;
  for (std::size_t hops = 0; hops <= held.size(); ++hops) {
    const MergeStream& s = streams[at];
    if (!s.blocked || s.waits_on == MergeStream::nobody || !judge.spend(1)) {
      return false;
    }
    const std::uint64_t way = s.wanted_stamp > s.head().stamp ? s.wanted_stamp - s.head().stamp : 0;
    if (way > longest) {
      longest = way;
      wrong = at;
    }
    at = s.waits_on;
    if (at == self) {
      release_hold(wrong);
      streams[wrong].forced = true;
      if (wrong != self) {
        woken.push_back(wrong);
      }
      return true;
    }
  }
  return false;
}

void Merger::State::release_hold(std::uint32_t stream) {
  MergeStream& s = streams[stream];
  const std::uint64_t stamp = s.head().stamp;
  s.blocked = false;
  waiters.erase({s.waits_for, stamp, stream});
  held.erase({stamp, stream});
  held_old.erase({stamp, stream});
}

// The address was acquired or released: who waits for it looks again. Beyond the judge's budget the
// earliest alone, so that a crowd at one address does not cost a crowd's time for every event.
void Merger::State::wake(std::uint64_t address) {
  if (waiters.empty()) {
    return;
  }
  for (auto it = waiters.lower_bound({address, 0, 0}); it != waiters.end() && std::get<0>(*it) == address;
       it = waiters.lower_bound({address, 0, 0})) {
    const std::uint32_t stream = std::get<2>(*it);
    release_hold(stream);
    woken.push_back(stream);
    if (!judge.spend(1)) {
      return;
    }
  }
}

void Merger::State::force(std::uint32_t stream) {
  release_hold(stream);
  streams[stream].forced = true;
  heads.push({streams[stream].head().stamp, stream});
}

// ---- the interface

Merger::Merger(const TapeHeader& header) : state_(std::make_unique<State>(header)) {}
Merger::Merger(Merger&&) noexcept = default;
Merger& Merger::operator=(Merger&&) noexcept = default;
Merger::~Merger() = default;

void Merger::add(ThreadIndex thread, std::vector<RecordedEvent> events) {
  state_->add(thread, std::move(events));
}
void Merger::gap(const Gap& gap) { state_->gap(gap); }
void Merger::damaged() { state_->damaged(); }

void Merger::watermark(const Watermark& mark) {
  State& s = *state_;
  s.run(no_limit);
  ++s.watermarks;
  s.output.mark(mark);
  const std::uint64_t back = s.judge.hold_back_ticks();
  s.begin_phase(mark.tick, mark.tick > back ? mark.tick - back : 0);
}

void Merger::finish(bool complete) {
  State& s = *state_;
  s.run(no_limit);
  s.finishing = true;
  if (!complete) {
    s.output.damaged();
  }
  s.begin_phase(no_limit, no_limit);
}

void Merger::take(std::vector<Event>& out, std::size_t at_most) {
  state_->run(at_most);
  state_->output.take(out, at_most);
}

const MergeReport& Merger::report() const noexcept { return state_->output.report; }
std::uint32_t Merger::slots() const noexcept { return state_->output.slots(); }
Merger::Load Merger::load() const noexcept {
  return {state_->buffered, state_->steps + state_->judge.steps()};
}

}  // namespace heaptape::format
