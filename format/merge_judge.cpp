#include "format/merge_judge.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace heaptape::format {
namespace {

// Processors run a plain rdtsc ahead of the loads before it: by 5,114 ticks at most in measurements
// with eight threads on one lock. 100 us leave room for machines with many more.
constexpr double hold_back_seconds = 100e-6;
constexpr std::uint64_t hold_back_ticks_at_least = 1U << 18;  // where the rate is not known either
constexpr std::uint64_t usual_hold_back_ticks = 2048;
// The shared counter is taken in program order; what is left is slack for importers.
constexpr std::uint64_t hold_back_numbers = 64;

std::uint64_t hold_back_of(const TapeHeader& header) {
  switch (header.clock) {
    case ClockSource::sequence:
      return hold_back_numbers;
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

bool is_fenced_release(const RecordedEvent& e) {
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
      usual_ticks_(header.clock == ClockSource::tsc ? usual_hold_back_ticks : 0),
      fenced_(header.clock != ClockSource::none) {}

// Adds what the stream does to the address up to `limit`; false once the budget is spent.
bool MergeJudge::gather(const MergeStream& stream, std::uint32_t index, std::uint32_t self,
                        std::uint64_t address, std::uint64_t limit) {
  const std::size_t first = touches_.size();
  std::size_t unbounded = first;  // acquires from here on have not met their thread's next release
  std::uint64_t visited = 1;
  const std::uint64_t may_visit = budget_;
  Effects effects(stream, address);
  stream.visit(0, [&](const RecordedEvent& e) {
    if (e.stamp > limit || visited >= may_visit) {
      return false;
    }
    ++visited;
    if (fenced_ && unbounded != touches_.size() && is_fenced_release(e)) {
      for (; unbounded != touches_.size(); ++unbounded) {
        touches_[unbounded].until = std::min(touches_[unbounded].until, e.stamp);
      }
    }
    const bool is_self = index == self && visited == 2;
    const Effect effect = is_self ? Effect::acquires : effects.of(e);
    if (effect != Effect::none) {
      touches_.push_back({e.stamp, latest_for(e.stamp), index, effect == Effect::releases, is_self});
    }
    return true;
  });
  return spend(visited);
}

Verdict MergeJudge::acquire(const std::vector<MergeStream>& streams, const std::vector<std::uint32_t>& active,
                            std::uint32_t self, std::uint64_t address, bool all_read) {
  const std::uint64_t stamp = streams[self].head().stamp;
  const std::uint64_t seen_until = std::min(latest_for(stamp), known_until_);
  if (!gather_all(streams, active, self, address, std::max(seen_until, stamp))) {
    return {};
  }
  const Verdict verdict = weigh(seen_until, all_read);
  if (verdict.ruling != Ruling::waits || verdict.proven || seen_until == known_until_ ||
      verdict.stamp <= stamp + usual_ticks_ || budget_ < ample_) {
    return verdict;
  }
  // A long way to the release, and nothing said of the address near it: look as far as can be seen.
  return gather_all(streams, active, self, address, known_until_) ? weigh(known_until_, all_read) : verdict;
}

bool MergeJudge::gather_all(const std::vector<MergeStream>& streams, const std::vector<std::uint32_t>& active,
                            std::uint32_t self, std::uint64_t address, std::uint64_t limit) {
  touches_.clear();
  for (const std::uint32_t index : active) {
    if (!streams[index].empty() && !gather(streams[index], index, self, address, limit)) {
      return false;
    }
  }
  std::stable_sort(touches_.begin(), touches_.end(),
                   [](const Touch& a, const Touch& b) { return a.stamp < b.stamp; });
  return true;
}

// Plays the address' events in the order of their stamps, acquires of a live address waiting in a
// queue, as the merge itself would; the address is live at first.
Verdict MergeJudge::weigh(std::uint64_t seen_until, bool all_read) const {
  const Verdict missing{.ruling = Ruling::missing};
  Verdict found;
  bool live = true;
  bool reached = false;  // the acquire that is judged is among `waiting` or has gone ahead
  std::deque<Touch> waiting;
  const auto in_vain = [&](std::uint64_t stamp) { return !waiting.empty() && waiting.front().until < stamp; };

  for (const Touch& touch : touches_) {
    while (in_vain(touch.stamp)) {
      if (reached) {
        return missing;
      }
      waiting.pop_front();  // an earlier acquire will be told that its release is missing
    }
    if (!touch.releases) {
      reached = reached || touch.is_self;
      if (live) {
        waiting.push_back(touch);
      } else {
        live = true;
        if (!touch.is_self) {
          found = {};  // the release before went to this one
        }
      }
      continue;
    }
    if (waiting.empty()) {
      if (reached) {
        found.proven = true;  // a release beyond need: all who waited did so rightly
        return found;
      }
      live = false;
      found = {.ruling = Ruling::waits, .stream = touch.stream, .stamp = touch.stamp};
      continue;
    }
    if (waiting.front().stream == touch.stream) {
      // A thread releases only what it has acquired before, so this is no release to wait for.
      if (reached) {
        return missing;
      }
      waiting.pop_front();
      live = false;
      continue;
    }
    if (waiting.front().is_self) {
      found = {.ruling = Ruling::waits, .stream = touch.stream, .stamp = touch.stamp};
    }
    waiting.pop_front();
  }
  const bool in_vain_to_the_end = !waiting.empty() && waiting.front().until <= seen_until;
  if (found.ruling == Ruling::waits) {
    return in_vain_to_the_end ? missing : found;
  }
  return all_read || in_vain_to_the_end ? missing : Verdict{};
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
    streams[index].visit(0, [&](const RecordedEvent& e) {
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
