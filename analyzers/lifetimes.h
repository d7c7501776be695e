// How long blocks live, and who releases them.
//
// A block lives from the call that made it to the call that released it; a realloc carries it on.
// Ages are counted in calls (of all threads) and in nanoseconds. 24 bytes per live object.
#pragma once

#include <cstdint>

#include "analyzers/analysis.h"
#include "analyzers/histogram.h"

namespace heaptape::analyzers {

struct Lifetimes {
  LogHistogram calls;        // age at release in calls; released by the very next call: 1
  LogHistogram nanoseconds;  // age at release
  std::uint64_t released = 0;
  std::uint64_t released_bytes = 0;            // last requested sizes
  std::uint64_t released_by_other_thread = 0;  // than the one that acquired or resized it last
  std::uint64_t resized_by_other_thread = 0;   // reallocs of a block that another thread acquired last
  std::uint64_t released_by_implication = 0;   // not in the histograms: the moment is unknown
  std::uint64_t mismatched = 0;                // malloc'd and deleted, new'd and freed, new[]/delete
};

class LifetimesAnalysis final : public Analysis {
 public:
  void consume(std::span<const format::Event> events) override;
  [[nodiscard]] const Lifetimes& result() const noexcept { return lifetimes_; }

 private:
  struct Birth {
    std::uint64_t call = 0;
    std::int64_t time_ns = 0;
    format::ThreadIndex thread{};
    format::Kind kind = format::Kind::malloc;
  };
  void release(const Birth& birth, const format::Event& e) noexcept;

  Lifetimes lifetimes_;
  SlotTable<Birth> births_;
  std::uint64_t calls_ = 0;
};

}  // namespace heaptape::analyzers
