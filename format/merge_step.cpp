// One event at a time: may it go ahead, and if not, what does it wait for.
#include <tuple>

#include "format/merge_state.h"

namespace heaptape::format {
namespace {

constexpr std::size_t open_reallocs_per_thread = 8;

bool is_release_part(const RecordedEvent& e) {
  return is_release(e.kind) || (is_realloc(e.kind) && e.phase == Phase::begin);
}

}  // namespace

// False: the head is held back.
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
    output.trimmed(s.caller(), e);
  } else {
    ++output.report.lost_events;  // no kind of this version
  }
  return true;
}

bool Merger::State::step_acquire(MergeStream& s, std::uint32_t self, const RecordedEvent& e) {
  if (e.address == 0) {
    output.failed(s.caller(), e);
    return true;
  }
  AddressTable::Claim claim{};
  if (!admit_acquire(s, self, e.address, claim)) {
    return false;
  }
  output.acquired(s.caller(), e, claim, s.was_blocked && claim.fresh && !s.forced);
  wake(e.address);
  return true;
}

bool Merger::State::step_release(MergeStream& s, std::uint32_t self, const RecordedEvent& e) {
  if (e.address == 0) {
    output.null_release(s.caller(), e);
    return true;
  }
  if (!held.empty() && !admit_release(s, self, e.address)) {
    return false;
  }
  output.released(s.caller(), e, s.was_blocked && !s.forced);
  s.last_release = e.stamp;
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
      s.last_release = e.stamp;
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
    output.unmoved(s.caller(), e, open, address != 0 ? &claim : nullptr, repaired);
  } else if (address != 0) {
    output.moved(s.caller(), e, open, claim, repaired);
  } else {
    output.freed(s.caller(), e, open);
  }
  if (address != 0) {
    wake(address);
  }
  return true;
}

void Merger::State::begin_realloc(MergeStream& s, const RecordedEvent& e) {
  if (s.open.size() == open_reallocs_per_thread) {
    output.unfinished(s.caller(), s.open.front());
    s.open.erase(s.open.begin());
  }
  s.open.push_back(output.begun(e, s.was_blocked && !s.forced));
  s.open.back().losses = s.head_losses();
}

// The open realloc that the end belongs to: the latest that asked for the same; else the latest,
// unless what is missing from the thread's stream may have ended that.
std::size_t Merger::State::matching_begin(const MergeStream& s, const RecordedEvent& e) const {
  for (std::size_t i = s.open.size(); i-- != 0;) {
    if (s.open[i].kind == e.kind && s.open[i].size_bytes == e.size_bytes) {
      return i;
    }
  }
  const bool certain = !s.open.empty() && !s.open.back().doubtful && s.open.back().losses == losses;
  return certain ? s.open.size() - 1 : s.open.size();
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
      if (is_release_part(ahead)) {
        hold(s, self, address, {.ruling = Ruling::waits, .stream = other, .stamp = ahead.stamp});
        if (s.blocked) {
          return false;
        }
        break;
      }
      if (!judge.spend(1)) {
        break;
      }
    }
  }
  claim = output.claim(address);
  return claim.fresh || s.forced || rule_on_acquire(s, self, address, claim);
}

bool Merger::State::rule_on_acquire(MergeStream& s, std::uint32_t self, std::uint64_t address,
                                    AddressTable::Claim& claim) {
  const Verdict verdict = judge.acquire({streams, active, self, address, output.born(*claim.slot), old(s)});
  if (verdict.ruling == Ruling::missing) {
    return true;
  }
  if (verdict.ruling == Ruling::displaces) {
    output.put_aside(address, claim);
    s.was_blocked = true;
    return true;
  }
  hold(s, self, address, verdict);
  return !s.blocked;
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
void Merger::State::close_cycle(std::uint32_t self) {
  std::uint32_t wrong = self;
  std::uint64_t longest = 0;
  std::uint32_t at = self;
  for (std::size_t hops = 0; hops <= held.size(); ++hops) {
    const MergeStream& s = streams[at];
    if (!s.blocked || s.waits_on == MergeStream::nobody || !judge.spend(1)) {
      return;
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
      return;
    }
  }
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

}  // namespace heaptape::format
