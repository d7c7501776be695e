// The merge: per-thread recorded streams in, one order out.
//
// Rules (docs: format/SPEC.md, "One order"): events of one thread keep their order; across threads
// the stamp decides. An acquire (or realloc end) of an address that is still live carries a stamp
// that is too early: it holds its whole thread back until the release it must follow has come (a
// repair). A release of an address that is not live waits likewise if its acquire is held back.
//
// Nothing waits for what is not there. An event read before watermark k depends only on events read
// before watermark k + 1, and a stamp is early by microseconds at most, so events go out behind the
// last watermark by that much, and everything a held event may wait for can be looked for in what has
// been read (merge_judge.h). If it is not there, it is missing from the tape: a release is unknown
// (born before the recording, or an event is lost); an acquire is a contradiction, and the missing
// release is implied in front of it. Only that one event is charged: others that wait behind it go on
// as if nothing had been missing. Held-back threads that wait for each other in a circle are the same case.
//
// Damage: from a gap on (less what a stamp may be early), after `damaged`, and in what is left at the end of
// a tape that was cut, implied and unknown releases are flagged `cut` and counted as implied_by_damage
// instead.
//
// Reallocs become one event at the place of their end. `failed` and `unfinished` ones release nothing
// (`released` is none) and still tell the old address. An end whose begin is missing counts as
// unknown. Events of no known kind are dropped and counted as lost. A block that comes after later
// events have gone out (late_events) goes out at once, with the time of the latest.
//
// Memory: two watermark intervals of events plus what is live. Not thread-safe. Any input is legal;
// garbage yields contradictions, never a crash, and takes linear time (times the logarithm of the
// number of threads).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "format/cursor.h"
#include "format/event.h"
#include "format/tape.h"

namespace heaptape::format {

class Merger {
 public:
  explicit Merger(const TapeHeader& header);
  Merger(Merger&&) noexcept;
  Merger& operator=(Merger&&) noexcept;
  ~Merger();

  // One block of one thread's stream, in that thread's order, in file order.
  void add(ThreadIndex thread, std::vector<RecordedEvent> events);
  void gap(const Gap& gap);
  // Blocks are missing here (damage): from now on, until `finish`, implied events count as damage.
  void damaged();
  void watermark(const Watermark& mark);
  // End of the tape: everything left is emitted. `complete` false: the tape was cut.
  void finish(bool complete);

  // Moves events that are in final order to the end of `out`, `at_most` of them; none: feed more.
  // The merging itself happens here, so that small batches stay in the cache.
  void take(std::vector<Event>& out, std::size_t at_most = std::numeric_limits<std::size_t>::max());
  [[nodiscard]] const MergeReport& report() const noexcept;
  [[nodiscard]] std::uint32_t slots() const noexcept;

  // What it holds and has done, for tests of the bounds above.
  struct Load {
    std::size_t buffered_events = 0;  // read and not merged
    std::uint64_t steps = 0;          // events tried, looked at or woken
  };
  [[nodiscard]] Load load() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heaptape::format
