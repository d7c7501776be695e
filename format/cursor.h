// The streaming event cursor: the one way in which planner and analyses read a tape.
//
// Guarantees: events come in the one merged order, index by index; memory is bounded by what is
// live (plus two watermark intervals), not by the tape's length. Recorded and packed tapes, and
// tests' vectors, look the same. One thread per cursor.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "format/base/error.h"
#include "format/event.h"

namespace heaptape::format {

// What the merge had to do to reach one order; complete once the cursor has reached its end.
// Kept in packed tapes, so that `check` says the same of both forms.
struct MergeReport {
  std::uint64_t events = 0;             // emitted, `implied` ones not counted
  std::uint64_t contradictions = 0;     // acquires of an address that nobody had released
  std::uint64_t repairs = 0;            // events held back behind the one they must follow
  std::uint64_t unknown_releases = 0;   // releases (and reallocs) of addresses not live, unexplained
  std::uint64_t open_reallocs = 0;      // begun, never ended
  std::uint64_t gaps = 0;               // places where the recorder dropped events
  std::uint64_t lost_events = 0;        // how many events the gaps and missing blocks held (known part)
  std::uint64_t implied_by_damage = 0;  // implied and unknown releases put down to gaps, damage or the cut
  std::uint64_t late_events = 0;        // published so late that their stamp was moved forward
  friend bool operator==(const MergeReport&, const MergeReport&) = default;
};

class EventCursor {
 public:
  EventCursor() = default;
  EventCursor(const EventCursor&) = delete;
  EventCursor& operator=(const EventCursor&) = delete;
  virtual ~EventCursor() = default;

  // The next run of events; an empty span is the end of the tape. Valid until the next call.
  [[nodiscard]] virtual Result<std::span<const Event>> next() = 0;
  [[nodiscard]] virtual const MergeReport& report() const noexcept = 0;
  // Largest number of slots in use so far: the length an array indexed by SlotIndex needs.
  [[nodiscard]] virtual std::uint32_t slots() const noexcept = 0;
  // Share of the tape read so far, 0 to 1, for progress.
  [[nodiscard]] virtual double progress() const noexcept { return 0.0; }
};

// A cursor over events that are already merged: for tests and for generated scenarios.
class VectorCursor final : public EventCursor {
 public:
  explicit VectorCursor(std::vector<Event> events, MergeReport report = {})
      : events_(std::move(events)), report_(report) {
    report_.events = events_.size();
    for (const Event& e : events_) {
      for (SlotIndex s : {e.slot, e.released_slot}) {
        if (s != SlotIndex::none && static_cast<std::uint32_t>(s) >= slots_) {
          slots_ = static_cast<std::uint32_t>(s) + 1;
        }
      }
    }
  }
  [[nodiscard]] Result<std::span<const Event>> next() override {
    if (done_) {
      return std::span<const Event>{};
    }
    done_ = true;
    return std::span<const Event>(events_);
  }
  [[nodiscard]] const MergeReport& report() const noexcept override { return report_; }
  [[nodiscard]] std::uint32_t slots() const noexcept override { return slots_; }

 private:
  std::vector<Event> events_;
  MergeReport report_;
  std::uint32_t slots_ = 0;
  bool done_ = false;
};

}  // namespace heaptape::format
