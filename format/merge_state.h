// The state of the merge, shared by merge.cpp (reading, phases) and merge_step.cpp (single events).
// Internal to the merge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "format/merge.h"
#include "format/merge_heads.h"
#include "format/merge_judge.h"
#include "format/merge_output.h"
#include "format/merge_stream.h"

namespace heaptape::format {

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
  bool rule_on_acquire(MergeStream& s, std::uint32_t self, std::uint64_t address, AddressTable::Claim& claim);
  bool admit_release(MergeStream& s, std::uint32_t self, std::uint64_t address);
  void begin_realloc(MergeStream& s, const RecordedEvent& e);
  [[nodiscard]] std::size_t matching_begin(const MergeStream& s, const RecordedEvent& e) const;
  void pass_gap(MergeStream& s);

  void hold(MergeStream& s, std::uint32_t self, std::uint64_t address, const Verdict& verdict);
  void release_hold(std::uint32_t stream);
  void wake(std::uint64_t address);
  void close_cycle(std::uint32_t self);
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
  std::uint64_t losses = 0;       // calls of `damaged`
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

}  // namespace heaptape::format
