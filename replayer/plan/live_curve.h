// The curve of live bytes over a plan, in bounded memory, and the instants worth measuring at.
//
// Guarantees: whatever the number of operations, at most `max_buckets` buckets are kept; each knows
// its end and its highest moment exactly (not a sample near it). One pass, O(1) per operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "replayer/plan/plan.h"

namespace heaptape::replayer {

// The state of the heap between two operations.
struct Moment {
  std::uint64_t op_index = 0;     // operations done
  std::uint64_t event_index = 0;  // of the tape: the event whose operation was done last
  std::int64_t time_ns = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t live_objects = 0;
};

class LiveCurve {
 public:
  explicit LiveCurve(std::size_t max_buckets);

  // The state after each operation, in order.
  void add(const Moment& moment) {
    last_ = moment;
    if (moment.requested_bytes > open_highest_.requested_bytes || in_bucket_ == 0) {
      open_highest_ = moment;
    }
    if (++in_bucket_ == stride_) {
      close_bucket();
    }
  }

  // Instants in order of op_index, none twice: bucket ends for cheap readings, and about
  // `exact_count` exact ones: the highest moment of all, the end, the highest moments of equal
  // sections of the run, and evenly spaced ones.
  [[nodiscard]] std::vector<PlanInstant> choose_instants(std::size_t exact_count);

 private:
  struct Bucket {
    Moment end;
    Moment highest;
  };
  void close_bucket();

  std::size_t max_buckets_;
  std::vector<Bucket> buckets_;
  std::uint64_t stride_ = 1;
  std::uint64_t in_bucket_ = 0;
  Moment open_highest_;
  Moment last_;
};

}  // namespace heaptape::replayer
