#include "analyzers/threads.h"

#include <algorithm>

namespace heaptape::analyzers {

using format::Event;
using format::EventFlag;
using format::ThreadIndex;

std::uint32_t ThreadsAnalysis::row_of(ThreadIndex thread) {
  if (!rows_.empty() && thread == latest_thread_) {
    return latest_row_;
  }
  const auto [at, fresh] = row_by_thread_.try_emplace(static_cast<std::uint32_t>(thread),
                                                      static_cast<std::uint32_t>(rows_.size()));
  if (fresh) {
    rows_.emplace_back().thread = thread;
  }
  latest_thread_ = thread;
  latest_row_ = at->second;
  return latest_row_;
}

void ThreadsAnalysis::consume(std::span<const Event> events) {
  for (const Event& e : events) {
    const std::uint32_t row = row_of(e.thread);
    if (is_call(e)) {
      ThreadRow& r = rows_[row];
      r.first_ns = r.calls == 0 ? e.time_ns : r.first_ns;
      r.last_ns = e.time_ns;
      ++r.calls;
      r.reallocs += is_realloc(e.kind) ? 1 : 0;
      r.acquires += is_acquire(e.kind) && acquires(e) ? 1 : 0;
      r.releases += is_release(e.kind) && !e.has(EventFlag::null_argument) ? 1 : 0;
    }
    if (releases(e)) {
      const std::uint32_t owner = owner_[e.released_slot];
      rows_[owner].live_bytes -= e.released_size_bytes;
      if (owner != row && is_call(e) && !acquires(e)) {
        ++rows_[row].releases_of_others;
        ++rows_[owner].released_by_others;
      }
    }
    if (acquires(e)) {
      owner_[e.slot] = row;
      ThreadRow& r = rows_[row];
      r.alloc_bytes += e.size_bytes;
      r.live_bytes += e.size_bytes;
      r.peak_live_bytes = std::max(r.peak_live_bytes, r.live_bytes);
    }
  }
}

void ThreadsAnalysis::finish(const format::MergeReport& /*merged*/) {
  // Threads seen only in implied releases made no call.
  std::erase_if(rows_, [](const ThreadRow& r) { return r.calls == 0; });
  std::sort(rows_.begin(), rows_.end(),
            [](const ThreadRow& a, const ThreadRow& b) { return a.thread < b.thread; });
}

}  // namespace heaptape::analyzers
