// The merge: per-thread recorded streams in, one order out.
//
// Rules (docs: format/SPEC.md, "One order"): events of one thread keep their order; across threads
// the stamp decides; an acquire (or realloc end) of an address that is still live holds its whole
// thread back until the release it must follow has come (a repair); a release of an address that is
// not live waits likewise. An event read before watermark k depends only on events read before
// watermark k + 1, so nothing waits past the next one: then a blocked release was born before the
// recording (unknown_release), and a blocked acquire is a contradiction: the missing release is
// implied. Only root causes are charged: a thread whose awaited event is itself stuck behind
// another stuck thread is not.
//
// Memory: two watermark intervals of events plus what is live. Not thread-safe. Any input is legal;
// garbage yields contradictions, never a crash or quadratic time.
#pragma once

#include <cstdint>
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

  // Moves the events that are in final order to the end of `out`.
  void take(std::vector<Event>& out);
  [[nodiscard]] const MergeReport& report() const noexcept;
  [[nodiscard]] std::uint32_t slots() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heaptape::format
