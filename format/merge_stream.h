// One thread's events that the merge has read and not yet emitted, and the thread's open reallocs.
//
// Guarantees: events come out in the order in which they went in; memory of a block is given back
// once its last event is taken. Not thread-safe; internal to the merge.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "format/event.h"

namespace heaptape::format {

// A realloc that has begun: its old address is no longer in the table, its object still lives.
struct OpenRealloc {
  std::uint64_t old_address = 0;  // 0: realloc(NULL, n)
  std::uint64_t old_size_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t alignment = 0;
  std::uint64_t stamp = 0;
  ObjectId object = ObjectId::none;  // none: the old address was not live
  SlotIndex slot = SlotIndex::none;
  SiteId site = SiteId::none;
  Kind kind = Kind::realloc;
  bool repaired = false;
  std::uint64_t losses = 0;  // how often blocks were missing before it was read
  bool doubtful = false;     // the thread lost events since; the end may be among them
  bool begin_lost = false;   // there was only an end
};

// Who made a call: the thread, and its stream's number within the merge.
struct Caller {
  ThreadIndex thread;
  std::uint32_t stream;
};

struct Birth {
  std::uint64_t stamp = 0;
  std::uint32_t stream = 0;
};

class MergeStream {
 public:
  explicit MergeStream(Caller caller) : caller_(caller) {}

  [[nodiscard]] const Caller& caller() const noexcept { return caller_; }
  [[nodiscard]] ThreadIndex thread() const noexcept { return caller_.thread; }
  [[nodiscard]] bool empty() const noexcept { return next_ == end_; }
  // Of a stream that is not empty:
  [[nodiscard]] const RecordedEvent& head() const noexcept { return *next_; }
  [[nodiscard]] std::uint64_t head_epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::uint64_t head_losses() const noexcept { return chunks_[first_].losses; }
  // An event a little ahead of the head, for prefetching; null if its block ends before.
  [[nodiscard]] const RecordedEvent* ahead(std::ptrdiff_t n) const noexcept {
    return end_ - next_ > n ? next_ + n : nullptr;
  }

  // `losses`: how often blocks were missing from the tape before.
  void push(std::vector<RecordedEvent> events, std::uint64_t epoch, std::uint64_t losses) {
    chunks_.push_back({std::move(events), epoch, losses, false});
    if (chunks_.size() == first_ + 1) {
      load();
    }
  }
  // The thread lost events after those pushed so far. Only where the stream is not empty.
  void mark_gap() noexcept { chunks_.back().gap_follows = true; }
  [[nodiscard]] std::uint64_t last_stamp() const noexcept { return chunks_.back().events.back().stamp; }

  // Drops the head; true: the thread lost events right after it.
  bool pop() noexcept {
    ++next_;
    return next_ == end_ && leave_chunk();
  }

  // The latest stamp among the blocks read when fewer than `epochs` watermarks had come; 0: none.
  [[nodiscard]] std::uint64_t latest_before(std::uint64_t epochs) const noexcept {
    std::uint64_t latest = 0;
    for (std::size_t i = first_; i < chunks_.size() && chunks_[i].epoch < epochs; ++i) {
      latest = std::max(latest, chunks_[i].events.back().stamp);
    }
    return latest;
  }

  // Calls f(event) for the events from the head on, until it returns false.
  template <typename F>
  void visit(F&& f) const {
    const RecordedEvent* event = next_;
    const RecordedEvent* end = end_;
    for (std::size_t chunk = first_; chunk < chunks_.size(); ++chunk) {
      if (chunk != first_) {
        event = chunks_[chunk].events.data();
        end = event + chunks_[chunk].events.size();
      }
      for (; event != end; ++event) {
        if (!f(*event)) {
          return;
        }
      }
    }
  }

  // The latest last: what a signal handler began ends before what it interrupted.
  std::vector<OpenRealloc> open;

  std::uint64_t last_release = 0;  // stamp of the thread's latest release that has been emitted

  // While the head is held back; kept by the merge.
  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
  bool blocked = false;
  bool was_blocked = false;         // the head has been held back
  bool forced = false;              // the head goes ahead, whatever it waited for
  bool active = false;              // listed among the streams with events
  std::uint64_t waits_for = 0;      // the address
  std::uint64_t wanted_stamp = 0;   // stamp of the event waited for, if known
  std::uint32_t waits_on = nobody;  // the stream that holds that event, if known

 private:
  struct Chunk {
    std::vector<RecordedEvent> events;  // never empty
    std::uint64_t epoch;                // how many watermarks came before it
    std::uint64_t losses;
    bool gap_follows;
  };

  void load() noexcept {
    next_ = chunks_[first_].events.data();
    end_ = next_ + chunks_[first_].events.size();
    epoch_ = chunks_[first_].epoch;
  }
  bool leave_chunk() noexcept {
    const bool gap = chunks_[first_].gap_follows;
    chunks_[first_].events = {};
    ++first_;
    if (first_ == chunks_.size()) {
      chunks_.clear();
      first_ = 0;
      next_ = end_ = nullptr;
      return gap;
    }
    if (first_ > 64 && 2 * first_ > chunks_.size()) {
      chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    load();
    return gap;
  }

  Caller caller_;
  const RecordedEvent* next_ = nullptr;
  const RecordedEvent* end_ = nullptr;
  std::uint64_t epoch_ = 0;
  std::vector<Chunk> chunks_;
  std::size_t first_ = 0;
};

}  // namespace heaptape::format
