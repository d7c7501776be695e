#include "tests/format/merge_playback.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace heaptape::format::merge_test {
namespace {

// The calls of each thread in the order in which their events must come.
using Calls = std::unordered_map<ThreadIndex, std::vector<Call>>;

class Truth {
 public:
  Truth(const Recording& recording, std::size_t items) {
    for (std::size_t i = 0; i < items; ++i) {
      if (const auto* block = std::get_if<Block>(&recording.items[i])) {
        for (const Entry& entry : block->entries) {
          if (entry.completes) {
            calls_[ThreadIndex{block->thread}].push_back(entry.call);
            if (entry.call.released != 0) {
              released_.insert(entry.call.released);
            }
          }
        }
      }
    }
  }

  void compare(const Event& e, Outcome& outcome) {
    if (e.has(EventFlag::implied)) {
      const auto it = model_of_.find(e.released);
      if (it == model_of_.end() || released_.count(it->second) != 0) {
        ++outcome.wrong_implied;
        note(e, outcome);
      }
      return;
    }
    if (e.has(EventFlag::unfinished)) {
      return;
    }
    const std::vector<Call>& calls = calls_[e.thread];
    const std::size_t n = next_[e.thread]++;
    ASSERT_LT(n, calls.size()) << "more events than calls";
    const Call& call = calls[n];
    bool right = (call.acquired != 0) == (e.object != ObjectId::none);
    if (call.acquired != 0) {
      model_of_[e.object] = call.acquired;
    }
    if (call.released != 0) {
      const auto it = model_of_.find(e.released);
      // A release whose acquire was deleted from the tape releases nothing.
      right = right &&
              (it != model_of_.end() ? it->second == call.released
                                     : e.has(EventFlag::unknown_release) && !acquired_on_tape(call.released));
    } else {
      right = right && e.released == ObjectId::none;
    }
    if (!right) {
      ++outcome.wrong_pairs;
      note(e, outcome);
    }
  }

  void expect_all() {
    for (const auto& [thread, calls] : calls_) {
      EXPECT_EQ(next_[thread], calls.size()) << "calls of thread " << static_cast<std::uint32_t>(thread);
    }
  }

 private:
  bool acquired_on_tape(std::uint64_t object) {
    if (acquired_.empty()) {
      for (const auto& [thread, calls] : calls_) {
        for (const Call& call : calls) {
          acquired_.insert(call.acquired);
        }
      }
    }
    return acquired_.count(object) != 0;
  }
  static void note(const Event& e, Outcome& outcome) {
    if (outcome.first_wrong.empty()) {
      outcome.first_wrong =
          fmt::format("event {} of thread {}: {} address {:x} object {} released {} flags {:x}", e.index,
                      static_cast<std::uint32_t>(e.thread), kind_name(e.kind), e.address,
                      static_cast<std::uint64_t>(e.object), static_cast<std::uint64_t>(e.released), e.flags);
    }
  }

  Calls calls_;
  std::unordered_map<ThreadIndex, std::size_t> next_;
  std::unordered_map<ObjectId, std::uint64_t> model_of_;
  std::unordered_set<std::uint64_t> released_;
  std::unordered_set<std::uint64_t> acquired_;
};

}  // namespace

Outcome play(const Recording& recording, const Playback& how) {
  const std::size_t items = std::min(how.until_item, recording.items.size());
  Outcome outcome;
  Truth truth(recording, items);
  Invariants invariants;
  Merger merger(recording.header);
  std::vector<Event> batch;
  std::size_t interval = 0;
  std::size_t interval_before = 0;
  const auto drain = [&] {
    for (merger.take(batch, 100); !batch.empty(); merger.take(batch, 100)) {
      invariants.check(batch);
      for (const Event& e : batch) {
        truth.compare(e, outcome);
      }
      outcome.events.insert(outcome.events.end(), batch.begin(), batch.end());
      batch.clear();
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  };
  for (std::size_t i = 0; i < items && !testing::Test::HasFatalFailure(); ++i) {
    if (const auto* block = std::get_if<Block>(&recording.items[i])) {
      std::vector<RecordedEvent> events;
      for (const Entry& entry : block->entries) {
        events.push_back(entry.event);
      }
      interval += events.size();
      merger.add(ThreadIndex{block->thread}, std::move(events));
    } else if (const auto* mark = std::get_if<Watermark>(&recording.items[i])) {
      outcome.two_intervals = std::max(outcome.two_intervals, interval_before + interval);
      interval_before = std::exchange(interval, 0);
      merger.watermark(*mark);
    } else if (const auto* gap = std::get_if<Gap>(&recording.items[i])) {
      merger.gap(*gap);
    } else {
      merger.damaged();
    }
    outcome.most_buffered = std::max(outcome.most_buffered, merger.load().buffered_events);
    drain();
  }
  outcome.two_intervals = std::max(outcome.two_intervals, interval_before + interval);
  merger.finish(how.complete);
  drain();
  if (!testing::Test::HasFatalFailure()) {
    truth.expect_all();
    invariants.check_end(merger);
  }
  outcome.report = merger.report();
  outcome.steps = merger.load().steps;
  return outcome;
}

}  // namespace heaptape::format::merge_test
