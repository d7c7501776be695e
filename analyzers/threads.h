// What each thread calls, and how much memory passes between threads.
//
// One row per thread with events; four bytes per live object.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzers/analysis.h"

namespace heaptape::analyzers {

struct ThreadRow {
  format::ThreadIndex thread{};
  std::uint64_t calls = 0;
  std::uint64_t acquires = 0;  // that succeeded, reallocs not counted
  std::uint64_t reallocs = 0;
  std::uint64_t releases = 0;            // of null pointers not counted
  std::uint64_t alloc_bytes = 0;         // requested, by acquires and reallocs that succeeded
  std::uint64_t releases_of_others = 0;  // blocks that another thread acquired (or resized) last
  std::uint64_t released_by_others = 0;  // this thread's blocks, released by another
  std::uint64_t live_bytes = 0;          // at the end, of blocks that this thread acquired last
  std::uint64_t peak_live_bytes = 0;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
};

class ThreadsAnalysis final : public Analysis {
 public:
  void consume(std::span<const format::Event> events) override;
  void finish(const format::MergeReport& merged) override;
  // By thread index, ascending.
  [[nodiscard]] const std::vector<ThreadRow>& result() const noexcept { return rows_; }

 private:
  [[nodiscard]] std::uint32_t row_of(format::ThreadIndex thread);

  std::vector<ThreadRow> rows_;
  std::unordered_map<std::uint32_t, std::uint32_t> row_by_thread_;  // a thread index is untrusted
  SlotTable<std::uint32_t> owner_;                                  // row
  format::ThreadIndex latest_thread_{};
  std::uint32_t latest_row_ = 0;
};

}  // namespace heaptape::analyzers
