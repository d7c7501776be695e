// An analysis: events of one tape in, one result out.
//
// Guarantees asked of every analysis: it sees each event once, in merged order; its memory is
// bounded by what is live (tables indexed by slot) and by constants, never by the tape's length;
// it prints nothing (render/ does). One thread. The events come from a cursor, which vouches for
// slots and sizes; kinds, sizes, threads and times are untrusted values and only ever counted.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "format/cursor.h"

namespace heaptape::analyzers {

class Analysis {
 public:
  Analysis() = default;
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;
  virtual ~Analysis() = default;

  // The next run of events. The span is gone after the call.
  virtual void consume(std::span<const format::Event> events) = 0;
  // The tape is at its end, whole or cut; called once, after the last `consume`.
  virtual void finish(const format::MergeReport& /*merged*/) {}
};

// Told the share of the tape that has been read, 0 to 1.
using ProgressFunction = std::function<void(double)>;

// Drives all analyses over the cursor in one pass. An error of the cursor ends the pass before any
// `finish`. Long runs of events are handed out in pieces that stay in the processor's cache while
// one analysis after the other reads them.
[[nodiscard]] format::Result<void> run(format::EventCursor& cursor, std::span<Analysis* const> analyses,
                                       const ProgressFunction& progress = {});
[[nodiscard]] format::Result<void> run(format::EventCursor& cursor, std::initializer_list<Analysis*> analyses,
                                       const ProgressFunction& progress = {});

// What analyses ask of an event. A realloc both releases and acquires; a failed one does neither.
[[nodiscard]] constexpr bool acquires(const format::Event& e) noexcept {
  return e.object != format::ObjectId::none;
}
[[nodiscard]] constexpr bool releases(const format::Event& e) noexcept {
  return e.released != format::ObjectId::none;
}
// False for a release that was never recorded, but must have happened.
[[nodiscard]] constexpr bool is_call(const format::Event& e) noexcept {
  return !e.has(format::EventFlag::implied);
}

// One T per live object, indexed by slot; as long as the largest number of live objects.
template <typename T>
class SlotTable {
 public:
  [[nodiscard]] T& operator[](format::SlotIndex slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (at >= entries_.size()) {
      entries_.resize(at + at / 2 + 64);
    }
    return entries_[at];
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::vector<T> entries_;
};

}  // namespace heaptape::analyzers
