#include "format/merge.h"

#include <algorithm>
#include <utility>

#include "format/merge_state.h"

namespace heaptape::format {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
// What the judge may look at in one phase: recordings need far less, except where watermarks follow
// each other within its window; then few events are buffered.
constexpr std::uint64_t looks_per_event = 32;
constexpr std::uint64_t looks_at_least = 1U << 16;
constexpr std::ptrdiff_t prefetch_ahead = 6;

}  // namespace

// ---- reading

std::uint32_t Merger::State::stream_of(ThreadIndex thread) {
  if (!streams.empty() && streams[latest_stream].thread() == thread) {
    return latest_stream;
  }
  const auto next = static_cast<std::uint32_t>(streams.size());
  const auto [it, fresh] = stream_numbers.try_emplace(thread, next);
  if (fresh) {
    streams.emplace_back(Caller{thread, next});
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
  s.push(std::move(events), watermarks, losses);
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
    output.damaged_from(0);
    pass_gap(s);
    return;
  }
  // What is lost came after the thread's last event; other threads' stamps may be too early.
  output.damaged_from(s.last_stamp() - std::min(s.last_stamp(), judge.hold_back_ticks()));
  s.mark_gap();
}

void Merger::State::damaged() {
  run(no_limit);
  output.damaged_from(0);
  ++losses;
}

// Here the thread's stream misses events.
void Merger::State::pass_gap(MergeStream& s) {
  for (OpenRealloc& open : s.open) {
    open.doubtful = true;
  }
}

// ---- phases

void Merger::State::begin_phase(std::uint64_t now_known, std::uint64_t new_frontier) {
  known_until = std::max(known_until, now_known);
  frontier = std::max(frontier, new_frontier);
  // What must go now does so after all that was stamped before it.
  if (watermarks >= 2) {
    for (const std::uint32_t number : active) {
      frontier = std::max(frontier, std::min(streams[number].latest_before(watermarks - 1), known_until));
    }
  }
  judge.begin_phase(known_until, looks_per_event * buffered + looks_at_least);
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
  // Nobody knows what the root waits for, if the judge's budget is spent: let all go that can.
  if (streams[root].waits_on == MergeStream::nobody && raise_frontier(known_until)) {
    return true;
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
      output.unfinished(streams[closing].caller(), open);
    }
    streams[closing].open.clear();
  }
  return closing < streams.size();
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
    s.output.damaged_from(0);
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
