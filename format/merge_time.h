// From stamps to nanoseconds, for the merge.
//
// Guarantees: times never decrease and never overflow, whatever header, marks and stamps say.
// Between two marks the time is interpolated; after the last one the header's rate is used (time
// stamp counter) or time stands still (sequence numbers); an untimed tape is at 0 throughout.
#pragma once

#include <cstdint>
#include <vector>

#include "format/tape.h"

namespace heaptape::format {

class MergeTimeline {
 public:
  explicit MergeTimeline(const TapeHeader& header);

  // Marks come in the order of the tape; one that does not lie after the last one is ignored.
  void mark(std::uint64_t tick, std::int64_t time_ns);

  [[nodiscard]] std::int64_t time_ns(std::uint64_t stamp) noexcept {
    if (stamp < from_tick_ || stamp >= to_tick_) {
      find_segment(stamp);
    }
    const std::uint64_t since = stamp > from_tick_ ? stamp - from_tick_ : 0;
    const double passed_ns = static_cast<double>(since) * ns_per_tick_;
    const std::int64_t time = from_ns_ + static_cast<std::int64_t>(passed_ns < limit ? passed_ns : limit);
    now_ns_ = time > now_ns_ ? time : now_ns_;
    return now_ns_;
  }

 private:
  struct Mark {
    std::uint64_t tick;
    std::int64_t time_ns;
  };
  static constexpr double limit = 4e18;  // two of them still fit into an int64
  static constexpr std::size_t marks_kept = 8;

  void find_segment(std::uint64_t stamp) noexcept;

  bool timed_;
  double tail_ns_per_tick_ = 0.0;
  std::vector<Mark> marks_;  // the latest, ticks ascending
  std::uint64_t from_tick_ = 1;
  std::uint64_t to_tick_ = 0;  // from_tick_ > to_tick_: no segment is chosen
  std::int64_t from_ns_ = 0;
  double ns_per_tick_ = 0.0;
  std::int64_t now_ns_ = 0;
};

}  // namespace heaptape::format
