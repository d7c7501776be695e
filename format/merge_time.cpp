#include "format/merge_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heaptape::format {

MergeTimeline::MergeTimeline(const TapeHeader& header) : timed_(header.clock != ClockSource::none) {
  if (header.clock == ClockSource::tsc && std::isfinite(header.ticks_per_second) &&
      header.ticks_per_second > 0) {
    tail_ns_per_tick_ = 1e9 / header.ticks_per_second;
  }
  marks_.push_back({header.start_tick, 0});
}

void MergeTimeline::mark(std::uint64_t tick, std::int64_t time_ns) {
  if (!timed_ || tick <= marks_.back().tick) {
    return;
  }
  const auto longest = static_cast<std::int64_t>(limit);
  marks_.push_back({tick, std::clamp(time_ns, marks_.back().time_ns, longest)});
  if (marks_.size() > marks_kept) {
    marks_.erase(marks_.begin());
  }
  from_tick_ = 1;
  to_tick_ = 0;
}

void MergeTimeline::find_segment(std::uint64_t stamp) noexcept {
  std::size_t after = 0;  // the first mark later than the stamp
  while (after < marks_.size() && marks_[after].tick <= stamp) {
    ++after;
  }
  if (after == 0) {  // before all that is known
    from_tick_ = 0;
    to_tick_ = marks_.front().tick;
    from_ns_ = marks_.front().time_ns;
    ns_per_tick_ = 0.0;
    return;
  }
  const Mark& from = marks_[after - 1];
  from_tick_ = from.tick;
  from_ns_ = from.time_ns;
  if (after < marks_.size()) {
    to_tick_ = marks_[after].tick;
    ns_per_tick_ = static_cast<double>(marks_[after].time_ns - from.time_ns) /
                   static_cast<double>(to_tick_ - from_tick_);
  } else {
    to_tick_ = std::numeric_limits<std::uint64_t>::max();
    ns_per_tick_ = timed_ ? tail_ns_per_tick_ : 0.0;
  }
}

}  // namespace heaptape::format
