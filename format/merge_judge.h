// What an event that cannot go ahead is waiting for, found by looking ahead in what has been read.
//
// For one address, acquires and releases take turns. Releases are stamped exactly; an acquire truly
// came somewhere between its stamp and a latest tick: a stamp runs ahead of its event by no more
// than `hold_back_ticks`, and never past the thread's own next release. So the acquires that lie
// ahead must be dealt out, one to each interval between two releases; earliest latest tick first finds
// a way if there is one. Three ways are tried for an acquire of a live address:
// - waits:     the object that is live ends with the next release, the acquire comes after some release;
// - displaces: the live object's own acquire was the early one; this one lives and ends before it;
// - missing:   there is no way: a release is not on the tape.
// Where the tape as read so far allows several, the first is taken, if the address is seen to be free
// later (then no release can be missing) or no stamp would have to be earlier than is credible. And a
// release that another thread makes at once after the acquire cannot be that of the acquired block.
//
// Cost: one pass over the events within `hold_back_ticks` of the acquire, and over all that are read
// where the way to the release is unusually long; all calls of one phase together are bounded
// by a budget, after which rulings are `undecided`. Internal to the merge.
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
  displaces,  // goes ahead, and the object that is live comes back when this one is released
  missing,    // what it would wait for is not on the tape
  undecided,  // not everything that could be waited for has been read; or the budget is spent
};

struct Verdict {
  Ruling ruling = Ruling::undecided;
  std::uint32_t stream = 0;  // `waits`: which stream holds the event
  std::uint64_t stamp = 0;   // ... and its stamp
  bool proven = false;       // the address is seen to be free later: no release is missing
  std::uint64_t early = 0;   // by how many ticks a stamp is too early, if so
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

  // The head of stream `self` acquires `address`, where an object with that birth is live.
  // `all_read`: whatever it may depend on has been read. `active` lists the streams with events.
  struct Question {
    const std::vector<MergeStream>& streams;
    const std::vector<std::uint32_t>& active;
    std::uint32_t self;
    std::uint64_t address;
    Birth born;
    bool all_read;
  };
  [[nodiscard]] Verdict acquire(const Question& question);
  // The head of `self` releases `address`, which is not live. Only a stream held back can have its
  // acquire: elsewhere all that was stamped before has been emitted.
  [[nodiscard]] Verdict release(const std::vector<MergeStream>& streams, const HeldStreams& held,
                                std::uint32_t self, std::uint64_t address);

 private:
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
  struct Touch {  // an event that acquires or releases the address
    std::uint64_t stamp;
    std::uint32_t rank;  // among equal stamps: acquires first, as far as a thread's own order allows
    std::uint32_t stream;
    std::uint64_t latest;  // of an acquire: when it came at the latest
    bool releases;
    bool is_self;  // the acquire in question
  };

  [[nodiscard]] std::uint64_t latest_for(std::uint64_t stamp) const noexcept {
    return stamp > no_limit - hold_back_ticks_ ? no_limit : stamp + hold_back_ticks_;
  }
  [[nodiscard]] Verdict released_at_once(const Question& question) const;
  [[nodiscard]] std::uint64_t latest_birth(const Question& question, std::uint64_t seen_until);
  // How early a stamp may be without proof.
  [[nodiscard]] std::uint64_t credible_ticks() const noexcept;
  [[nodiscard]] Verdict look(const Question& question, std::uint64_t seen_until);
  bool gather(const Question& question, std::uint32_t stream, std::uint64_t limit);
  [[nodiscard]] Verdict deal_out(const Question& question, std::uint64_t seen_until, bool displace);

  std::uint64_t hold_back_ticks_;
  std::uint64_t at_once_ticks_;   // no block changes hands and is released within that time
  std::uint64_t before_release_;  // an acquire comes at least so many ticks before its thread's next release
  std::uint64_t known_until_ = 0;
  std::uint64_t budget_ = 0;
  std::uint64_t ample_ = 0;  // as long as that is left, a second look is affordable
  std::uint64_t steps_ = 0;
  std::uint64_t earliest_proven_ = 0;  // in ticks; tells what this recording's machine can do
  std::vector<Touch> touches_;         // scratch
};

}  // namespace heaptape::format
