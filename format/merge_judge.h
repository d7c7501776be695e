// What an event that cannot go ahead is waiting for, found by looking ahead in what has been read.
//
// An acquire of a live address either carries a stamp that is too early (it follows a release that
// the merge has not reached yet), or that release is missing from the tape. Two bounds, both of
// which hold for every recording, tell them apart: a stamp runs ahead of its event by no more than
// `hold_back`, and never past the thread's own next release, whose stamp is fenced. A release that
// satisfies neither is not the one; and if taking the first that does would leave a later acquire
// of the same address without its release, it was not the one either.
//
// Cost: one pass over the events within `hold_back` of the acquire, and over all that are read where
// the way to the release is unusually long; all calls of one phase together are bounded by a
// budget, after which rulings are `undecided`. Internal to the merge.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "format/merge_stream.h"
#include "format/tape.h"

namespace heaptape::format {

enum class Ruling : std::uint8_t {
  waits,      // for the event named
  missing,    // what it would wait for is not on the tape
  undecided,  // not everything that could be waited for has been read; or the budget is spent
};

struct Verdict {
  Ruling ruling = Ruling::undecided;
  std::uint32_t stream = 0;  // `waits`: which stream holds the event
  std::uint64_t stamp = 0;   // ... and its stamp
  bool proven = false;       // ... and the address' next event after it agrees
};

// (stamp of the head, stream), of all streams held back.
using HeldStreams = std::set<std::pair<std::uint64_t, std::uint32_t>>;

class MergeJudge {
 public:
  explicit MergeJudge(const TapeHeader& header);

  // By how many ticks an acquire's stamp may be too early.
  [[nodiscard]] std::uint64_t hold_back_ticks() const noexcept { return hold_back_ticks_; }

  // From now on everything up to `known_until` has been read, and that many events may be looked at.
  void begin_phase(std::uint64_t known_until, std::uint64_t budget) noexcept {
    known_until_ = known_until;
    budget_ = budget;
    ample_ = budget / 2;
  }
  // Spends part of the budget; false if there is none left.
  bool spend(std::uint64_t steps) noexcept {
    steps_ += steps;
    budget_ = budget_ > steps ? budget_ - steps : 0;
    return budget_ != 0;
  }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  // The head of `self` acquires `address`, which is live. `all_read`: whatever it may depend on has
  // been read. `active` lists the streams that have events.
  [[nodiscard]] Verdict acquire(const std::vector<MergeStream>& streams,
                                const std::vector<std::uint32_t>& active, std::uint32_t self,
                                std::uint64_t address, bool all_read);
  // The head of `self` releases `address`, which is not live. Only a stream held back can have its
  // acquire: elsewhere all that was stamped before has been emitted.
  [[nodiscard]] Verdict release(const std::vector<MergeStream>& streams, const HeldStreams& held,
                                std::uint32_t self, std::uint64_t address);

 private:
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
  struct Touch {  // an event that acquires or releases the address
    std::uint64_t stamp;
    std::uint64_t until;  // acquires: the latest stamp of the release it can have followed
    std::uint32_t stream;
    bool releases;
    bool is_self;  // the acquire that is judged
  };

  [[nodiscard]] std::uint64_t latest_for(std::uint64_t stamp) const noexcept {
    return stamp > no_limit - hold_back_ticks_ ? no_limit : stamp + hold_back_ticks_;
  }
  bool gather_all(const std::vector<MergeStream>& streams, const std::vector<std::uint32_t>& active,
                  std::uint32_t self, std::uint64_t address, std::uint64_t limit);
  bool gather(const MergeStream& stream, std::uint32_t index, std::uint32_t self, std::uint64_t address,
              std::uint64_t limit);
  [[nodiscard]] Verdict weigh(std::uint64_t seen_until, bool all_read) const;

  std::uint64_t hold_back_ticks_;
  std::uint64_t usual_ticks_;  // nearly all stamps that are early are so by no more
  bool fenced_;                // stamps of releases are never too early
  std::uint64_t known_until_ = 0;
  std::uint64_t budget_ = 0;
  std::uint64_t ample_ = 0;  // as long as that is left, a second look is affordable
  std::uint64_t steps_ = 0;
  std::vector<Touch> touches_;  // scratch
};

}  // namespace heaptape::format
