#include "format/merge_judge.h"

#include <algorithm>
#include <cmath>

namespace heaptape::format {
namespace {

// Processors run a plain rdtsc ahead of the loads before it: by 5,114 ticks at most in measurements
// with eight threads on one lock. 100 us leave room for machines with many more.
constexpr double hold_back_seconds = 100e-6;
constexpr std::uint64_t hold_back_ticks_at_least = 1U << 18;  // where the rate is not known either
// Less than a cache line needs from one core to another, even between the two halves of a core.
constexpr std::uint64_t hand_over_ticks = 128;
constexpr std::uint64_t credible_hold_back_ticks = 1U << 14;  // three times the most seen

constexpr std::uint64_t dealing_cost = 8;  // of one touch, in looks

std::uint64_t hold_back_of(const TapeHeader& header) {
  switch (header.clock) {
    case ClockSource::sequence:
      return 0;  // the shared counter is incremented in program order
    case ClockSource::none:
      return std::numeric_limits<std::uint64_t>::max();
    case ClockSource::tsc:
      break;
  }
  const double ticks = header.ticks_per_second * hold_back_seconds;
  if (!std::isfinite(ticks) || ticks < static_cast<double>(hold_back_ticks_at_least)) {
    return hold_back_ticks_at_least;
  }
  return ticks < 1e15 ? static_cast<std::uint64_t>(ticks) : 1'000'000'000'000'000U;
}

bool is_exact_release(const RecordedEvent& e) {
  return e.address != 0 && (is_release(e.kind) || (is_realloc(e.kind) && e.phase == Phase::begin));
}

enum class Effect : std::uint8_t { none, acquires, releases };

// What events of one thread do to one address. A failed realloc has no address of its own: it
// gives back the one that the thread's latest `begin` took.
class Effects {
 public:
  Effects(const MergeStream& stream, std::uint64_t address)
      : address_(address), begun_(stream.open.empty() ? 0 : stream.open.back().old_address) {}

  Effect of(const RecordedEvent& e) {
    if (is_acquire(e.kind)) {
      return e.address == address_ ? Effect::acquires : Effect::none;
    }
    if (is_release(e.kind)) {
      return e.address == address_ ? Effect::releases : Effect::none;
    }
    if (!is_realloc(e.kind)) {
      return Effect::none;
    }
    if (e.phase == Phase::begin) {
      begun_ = e.address;
      return e.address == address_ ? Effect::releases : Effect::none;
    }
    const std::uint64_t gets = e.phase == Phase::failed ? begun_ : e.address;
    return gets == address_ ? Effect::acquires : Effect::none;
  }

 private:
  std::uint64_t address_;
  std::uint64_t begun_;
};

}  // namespace

MergeJudge::MergeJudge(const TapeHeader& header)
    : hold_back_ticks_(hold_back_of(header)),
      at_once_ticks_(header.clock == ClockSource::tsc ? hand_over_ticks : 0),
      before_release_(header.clock == ClockSource::none ? 0 : 1) {}

std::uint64_t MergeJudge::credible_ticks() const noexcept {
  if (hold_back_ticks_ == no_limit) {
    return no_limit;  // stamps of unknown worth
  }
  return std::max(credible_hold_back_ticks, 4 * std::min(earliest_proven_, hold_back_ticks_));
}

Verdict MergeJudge::acquire(const Question& question) {
  const std::uint64_t stamp = question.streams[question.self].head().stamp;
  const std::uint64_t near = std::min(latest_for(stamp), known_until_);
  Verdict verdict = look(question, near);
  if (verdict.ruling == Ruling::missing || verdict.ruling == Ruling::undecided) {
    return verdict;
  }
  if (!verdict.proven && near != known_until_ && verdict.early > at_once_ticks_ && budget_ >= ample_) {
    // Unusual, and nothing proven by what is near: look as far as can be seen.
    if (const Verdict second = look(question, known_until_); second.ruling != Ruling::undecided) {
      verdict = second;
    }
  }
  if (verdict.proven) {
    earliest_proven_ = std::max(earliest_proven_, verdict.early);
  } else if (verdict.early > credible_ticks() && (question.all_read || latest_for(stamp) <= known_until_)) {
    return {.ruling = Ruling::missing};
  }
  return verdict;
}

Verdict MergeJudge::look(const Question& question, std::uint64_t seen_until) {
  const std::uint64_t limit = std::max(seen_until, question.streams[question.self].head().stamp);
  touches_.clear();
  for (const std::uint32_t stream : question.active) {
    if (!question.streams[stream].empty() && !gather(question, stream, limit)) {
      return {};
    }
  }
  if (!spend(dealing_cost * touches_.size())) {
    return {};
  }
  std::stable_sort(touches_.begin(), touches_.end(), [](const Touch& a, const Touch& b) {
    return std::pair(a.stamp, a.rank) < std::pair(b.stamp, b.rank);
  });
  if (const Verdict at_once = released_at_once(question); at_once.ruling == Ruling::waits) {
    return at_once;
  }
  const Verdict waits = deal_out(question, seen_until, false);
  if (waits.ruling != Ruling::missing) {
    return waits;
  }
  const Verdict displaces = deal_out(question, seen_until, true);
  // Where stamps are of unknown worth, only proof counts.
  return displaces.proven || hold_back_ticks_ != no_limit ? displaces : waits;
}

// Adds what the stream does to the address up to `limit`; false once the budget is spent.
bool MergeJudge::gather(const Question& question, std::uint32_t stream, std::uint64_t limit) {
  std::size_t unbounded = touches_.size();  // acquires from here on have not met their thread's next release
  std::uint64_t visited = 1;
  const std::uint64_t may_visit = budget_;
  Effects effects(question.streams[stream], question.address);
  std::uint64_t stamp = 0;
  std::uint32_t rank = 0;
  question.streams[stream].visit([&](const RecordedEvent& e) {
    if (e.stamp > limit || visited >= may_visit) {
      return false;
    }
    const bool is_self = stream == question.self && visited == 1;
    ++visited;
    if (unbounded != touches_.size() && is_exact_release(e)) {
      const std::uint64_t before = e.stamp - std::min(e.stamp, before_release_);
      for (; unbounded != touches_.size(); ++unbounded) {
        touches_[unbounded].latest = std::min(touches_[unbounded].latest, before);
      }
    }
    const Effect effect = is_self ? Effect::acquires : effects.of(e);
    if (effect != Effect::none) {
      const bool releases = effect == Effect::releases;
      const auto odd = static_cast<std::uint32_t>(releases);
      rank = e.stamp == stamp ? rank + ((rank ^ odd) & 1U) : odd;
      stamp = e.stamp;
      touches_.push_back({e.stamp, rank, stream, latest_for(e.stamp), releases, is_self});
    }
    return true;
  });
  return spend(visited);
}

Verdict MergeJudge::released_at_once(const Question& question) const {
  const auto self = std::find_if(touches_.begin(), touches_.end(), [](const Touch& t) { return t.is_self; });
  const auto release =
      std::find_if(touches_.begin(), touches_.end(), [](const Touch& t) { return t.releases; });
  if (release == touches_.end() || release->stream == question.self || release->stamp > self->latest) {
    return {};
  }
  const std::uint64_t early = release->stamp - std::min(release->stamp, self->stamp);
  if (early > at_once_ticks_) {
    return {};
  }
  return {.ruling = Ruling::waits, .stream = release->stream, .stamp = release->stamp, .early = early};
}

// When the live object's acquire came at the latest.
std::uint64_t MergeJudge::latest_birth(const Question& question, std::uint64_t seen_until) {
  const MergeStream& stream = question.streams[question.born.stream];
  std::uint64_t latest = latest_for(question.born.stamp);
  if (question.born.stream == question.self) {
    latest = question.born.stamp;  // before what its thread does now
  } else if (stream.last_release > question.born.stamp) {
    latest = std::min(latest, stream.last_release);
  } else {
    std::uint64_t visited = 1;
    stream.visit([&](const RecordedEvent& e) {
      ++visited;
      if (is_exact_release(e)) {
        latest = std::min(latest, e.stamp - std::min(e.stamp, before_release_));
        return false;
      }
      return e.stamp <= std::min(latest, seen_until) && visited < budget_;
    });
    spend(visited);
  }
  return latest;
}

// Deals the acquires out to the intervals between releases. `displace`: the live object's acquire is
// dealt out with them; else it has the first interval.
Verdict MergeJudge::deal_out(const Question& question, std::uint64_t seen_until, bool displace) {
  constexpr Verdict missing{.ruling = Ruling::missing};
  const auto live_object = touches_.size();
  std::set<std::pair<std::uint64_t, std::size_t>> waiting;  // latest tick, index of the touch
  Verdict verdict;
  const Touch* next_release = nullptr;  // whatever interval it gets, it looks again after this one
  const auto deal = [&] {
    const std::size_t next = waiting.begin()->second;
    waiting.erase(waiting.begin());
    if (next != live_object && touches_[next].is_self) {
      verdict.ruling = next_release == nullptr ? Ruling::displaces : Ruling::waits;
    }
  };

  bool first = true;
  if (displace) {
    waiting.emplace(latest_birth(question, seen_until), live_object);
  }
  for (std::size_t i = 0; i < touches_.size() && !verdict.proven; ++i) {
    const Touch& touch = touches_[i];
    if (!touch.releases) {
      waiting.emplace(touch.latest, i);
      continue;
    }
    if ((displace || !first) && !waiting.empty()) {
      deal();
    }
    first = false;
    if (next_release == nullptr) {
      next_release = &touch;
    }
    if (!waiting.empty() && waiting.begin()->first < touch.stamp) {
      return missing;
    }
    verdict.proven = verdict.ruling != Ruling::undecided && waiting.empty();
  }
  if ((displace || !first) && !waiting.empty()) {  // in the interval that has not ended
    deal();
  }
  if (!waiting.empty() && waiting.begin()->first <= seen_until) {
    return missing;
  }
  if (next_release != nullptr) {
    const std::uint64_t early_one = verdict.ruling == Ruling::displaces
                                        ? question.born.stamp
                                        : question.streams[question.self].head().stamp;
    verdict.stream = next_release->stream;
    verdict.stamp = next_release->stamp;
    verdict.early = verdict.stamp - std::min(verdict.stamp, early_one);
  }
  if (verdict.ruling == Ruling::waits && verdict.stream == question.self) {
    return missing;
  }
  if (verdict.ruling != Ruling::undecided) {
    return verdict;
  }
  return question.all_read ? missing : Verdict{};
}

Verdict MergeJudge::release(const std::vector<MergeStream>& streams, const HeldStreams& held,
                            std::uint32_t self, std::uint64_t address) {
  const std::uint64_t limit = streams[self].head().stamp;
  for (const auto& [stamp, index] : held) {
    if (stamp > limit) {
      break;
    }
    if (index == self) {
      continue;
    }
    const std::uint64_t may_visit = budget_;
    std::uint64_t visited = 1;
    Verdict last{.ruling = Ruling::missing, .stream = index};
    Effects effects(streams[index], address);
    streams[index].visit([&](const RecordedEvent& e) {
      if (e.stamp > limit || visited >= may_visit) {
        return false;
      }
      ++visited;
      if (const Effect effect = effects.of(e); effect != Effect::none) {
        last.ruling = effect == Effect::acquires ? Ruling::waits : Ruling::missing;
        last.stamp = e.stamp;
      }
      return true;
    });
    if (!spend(visited)) {
      return {};
    }
    if (last.ruling == Ruling::waits) {
      return last;
    }
  }
  return {.ruling = Ruling::missing};
}

}  // namespace heaptape::format
