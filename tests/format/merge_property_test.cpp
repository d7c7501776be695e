// Random recordings with every distortion of stamps that real ones have, merged and compared with
// what truly happened; whole ones, and ones from which something is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <unordered_map>
#include <utility>

#include "tests/format/merge_playback.h"

namespace heaptape::format {
namespace {

using merge_test::Block;
using merge_test::Entry;
using merge_test::MissingBlock;
using merge_test::Outcome;
using merge_test::play;
using merge_test::Recording;
using merge_test::Shape;
using merge_test::simulate;

class Choice {
 public:
  explicit Choice(std::uint64_t seed) : random_(seed * 7919) {}
  std::uint64_t of(std::initializer_list<std::uint64_t> values) {
    return *(values.begin() + below(values.size()));
  }
  std::uint32_t of32(std::initializer_list<std::uint64_t> values) {
    return static_cast<std::uint32_t>(of(values));
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

 private:
  std::mt19937_64 random_;
};

// Another mixture of everything for every seed.
Shape wild(std::uint64_t seed) {
  Choice choice(seed);
  Shape shape;
  shape.seed = seed;
  shape.threads = choice.of32({1, 2, 3, 4, 8, 20});
  shape.addresses = shape.threads * choice.of32({3, 8, 100}) + 8;
  shape.prefix_calls = choice.of32({0, 0, 300});
  shape.early_percent = choice.of32({0, 5, 50, 100});
  shape.early_ticks = choice.of({50, 1000, 5000, 15000});
  shape.late_permille = choice.of32({0, 2, 20});
  shape.pass_ticks = choice.of({1000, 30000, 500000});
  shape.marks_percent = choice.of32({0, 10, 100});
  shape.resize_percent = choice.of32({0, 10, 60});
  shape.gap_ticks = choice.of({30, 300, 3000});
  shape.clock = choice.of({0, 0, 0, 1}) == 0 ? ClockSource::tsc : ClockSource::sequence;
  return shape;
}

// As on real machines: few stamps are early, and watermarks are many lives apart.
Shape lifelike(std::uint64_t seed) {
  Choice choice(seed);
  Shape shape;
  shape.seed = seed;
  shape.calls = 12000;
  shape.threads = choice.of32({1, 2, 4, 8});
  shape.addresses = shape.threads * choice.of32({3, 8}) + 8;
  shape.early_percent = choice.of32({0, 1});
  shape.early_ticks = choice.of({50, 1000, 5000});
  shape.pass_ticks = 600000;
  shape.marks_percent = 100;
  shape.resize_percent = choice.of32({0, 20});
  shape.gap_ticks = choice.of({30, 300});
  return shape;
}

struct Place {
  Block* block;
  std::size_t entry;
  [[nodiscard]] const Entry& get() const { return block->entries[entry]; }
  void erase() const { block->entries.erase(block->entries.begin() + static_cast<std::ptrdiff_t>(entry)); }
};

// The entries that `wanted` accepts and whose stamps lie in the first third of the recording.
template <typename F>
std::vector<Place> places(Recording& recording, F&& wanted) {
  std::uint64_t last = 0;
  std::vector<Place> found;
  for (const bool collect : {false, true}) {
    for (auto& item : recording.items) {
      auto* block = std::get_if<Block>(&item);
      for (std::size_t i = 0; block != nullptr && i < block->entries.size(); ++i) {
        const Entry& entry = block->entries[i];
        if (!collect) {
          last = std::max(last, entry.event.stamp);
        } else if (entry.event.stamp < last / 3 && wanted(entry)) {
          found.push_back({block, i});
        }
      }
    }
  }
  return found;
}

// Which objects an address held, by the model's numbers.
std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> objects_by_address(const Recording& recording) {
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> objects;
  for (const auto& item : recording.items) {
    if (const auto* block = std::get_if<Block>(&item)) {
      for (const Entry& entry : block->entries) {
        if (entry.call.acquired != 0) {
          objects[entry.event.address].push_back(entry.call.acquired);
        }
      }
    }
  }
  return objects;
}

void expect_sound(const Outcome& outcome) {
  EXPECT_EQ(outcome.report.contradictions, 0U) << outcome.first_wrong;
  EXPECT_EQ(outcome.report.unknown_releases, 0U) << outcome.first_wrong;
  EXPECT_EQ(outcome.report.implied_by_damage, 0U);
  EXPECT_LE(outcome.most_buffered, outcome.two_intervals);
}

TEST(MergeProperty, ACompleteRecordingMergesIntoTheTruePairingWithoutContradictions) {
  std::uint64_t repairs = 0;
  std::uint64_t late = 0;
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    const Shape shape = wild(seed);
    SCOPED_TRACE(shape.name());
    const Outcome outcome = play(simulate(shape));
    expect_sound(outcome);
    EXPECT_EQ(outcome.wrong_pairs, 0U) << outcome.first_wrong;
    repairs += outcome.report.repairs;
    late += outcome.report.late_events;
  }
  EXPECT_GT(repairs, 3000U) << "the recordings must have something to repair";
  EXPECT_GT(late, 100U);
}

TEST(MergeProperty, StampsEarlierThanAWholeLifeAtTheAddressContradictNothing) {
  std::uint64_t repairs = 0;
  for (std::uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    Shape shape = lifelike(seed);
    shape.overtaking = true;
    shape.early_percent = 2;
    SCOPED_TRACE(shape.name());
    const Outcome outcome = play(simulate(shape));
    expect_sound(outcome);
    repairs += outcome.report.repairs;
  }
  EXPECT_GT(repairs, 300U);
}

TEST(MergeProperty, OneDeletedFreeIsOneContradictionAndAllElseIsPairedRight) {
  std::size_t deleted = 0;
  for (std::uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    const Shape shape = lifelike(seed);
    SCOPED_TRACE(shape.name());
    Recording recording = simulate(shape);
    const auto objects = objects_by_address(recording);
    const auto frees = places(recording, [&](const Entry& e) {
      if (e.event.phase != Phase::whole || e.call.released == 0) {
        return false;
      }
      const auto& lives = objects.at(e.event.address);
      return std::count_if(lives.begin(), lives.end(), [&](auto o) { return o > e.call.released; }) >= 3;
    });
    if (frees.empty()) {
      continue;
    }
    const Place lost = frees[Choice(seed).below(frees.size())];
    const std::uint64_t object = lost.get().call.released;
    lost.erase();
    const Outcome outcome = play(recording);
    EXPECT_EQ(outcome.report.contradictions, 1U) << "object " << object;
    EXPECT_EQ(outcome.report.unknown_releases, 0U);
    EXPECT_EQ(outcome.wrong_pairs, 0U) << outcome.first_wrong;
    EXPECT_EQ(outcome.wrong_implied, 0U) << outcome.first_wrong;
    ++deleted;
  }
  EXPECT_GT(deleted, 150U);
}

TEST(MergeProperty, OneDeletedMallocIsOneUnknownReleaseAndAllElseIsPairedRight) {
  std::size_t deleted = 0;
  for (std::uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    const Shape shape = lifelike(seed);
    SCOPED_TRACE(shape.name());
    Recording recording = simulate(shape);
    const auto acquires = places(
        recording, [](const Entry& e) { return e.event.phase == Phase::whole && e.call.acquired != 0; });
    if (acquires.empty()) {
      continue;
    }
    acquires[Choice(seed).below(acquires.size())].erase();
    const Outcome outcome = play(recording);
    EXPECT_EQ(outcome.report.contradictions, 0U) << outcome.first_wrong;
    EXPECT_EQ(outcome.report.unknown_releases, 1U);
    EXPECT_EQ(outcome.wrong_pairs, 0U) << outcome.first_wrong;
    ++deleted;
  }
  EXPECT_GT(deleted, 150U);
}

// Takes up to `n` entries out of the place's block, which is split there.
void lose(Recording& recording, const Place& place, std::size_t n, bool as_gap) {
  Block& block = *place.block;
  const auto from = block.entries.begin() + static_cast<std::ptrdiff_t>(place.entry);
  const auto to = block.entries.end() - from > static_cast<std::ptrdiff_t>(n)
                      ? from + static_cast<std::ptrdiff_t>(n)
                      : block.entries.end();
  const std::uint64_t stamp = to != block.entries.end() ? to->event.stamp : 0;
  Block rest{block.thread, {to, block.entries.end()}};
  const auto lost = static_cast<std::uint64_t>(to - from);
  block.entries.erase(from, block.entries.end());
  const auto at = std::find_if(recording.items.begin(), recording.items.end(),
                               [&](const auto& item) { return std::get_if<Block>(&item) == &block; });
  auto next = recording.items.begin() + (at - recording.items.begin()) + 1;
  if (as_gap) {
    next = recording.items.insert(next, Gap{ThreadIndex{rest.thread}, lost, stamp}) + 1;
  } else {
    next = recording.items.insert(next, MissingBlock{}) + 1;
  }
  if (!rest.entries.empty()) {
    recording.items.insert(next, std::move(rest));
  }
}

TEST(MergeProperty, WhatFollowsFromAGapOrAMissingBlockIsPutDownToIt) {
  std::uint64_t put_down = 0;
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    const Shape shape = seed % 2 == 0 ? lifelike(seed) : wild(seed);
    SCOPED_TRACE(shape.name());
    Recording recording = simulate(shape);
    const auto all = places(recording, [](const Entry&) { return true; });
    if (all.empty()) {
      continue;
    }
    Choice choice(seed);
    lose(recording, all[choice.below(all.size())], 1 + choice.below(30), choice.below(2) == 0);
    const Outcome outcome = play(recording);
    EXPECT_EQ(outcome.report.contradictions, 0U);
    EXPECT_EQ(outcome.report.unknown_releases, 0U);
    put_down += outcome.report.implied_by_damage;
  }
  EXPECT_GT(put_down, 300U);
}

TEST(MergeProperty, ATapeCutAnywhereSaysNothingWorseThanThatItWasCut) {
  std::uint64_t put_down = 0;
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    Shape shape = wild(seed);
    shape.calls = 600;
    SCOPED_TRACE(shape.name());
    const Recording recording = simulate(shape);
    for (std::size_t until = 0; until < recording.items.size() && !HasFailure();
         until += 1 + recording.items.size() / 50) {
      const Outcome outcome = play(recording, {.complete = false, .until_item = until});
      EXPECT_EQ(outcome.report.contradictions, 0U) << "cut at item " << until;
      EXPECT_EQ(outcome.report.unknown_releases, 0U) << "cut at item " << until;
      put_down += outcome.report.implied_by_damage;
    }
  }
  EXPECT_GT(put_down, 100U);
}

TEST(MergeProperty, TheSameTapeMergesIntoTheSameOrder) {
  const Recording recording = simulate(wild(5));
  const Outcome first = play(recording);
  const Outcome second = play(recording);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.report, second.report);
}

}  // namespace
}  // namespace heaptape::format
