// Streams that no program could have made: the merge must stay sane, bounded and near linear.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/format/merge_support.h"

namespace heaptape::format {
namespace {

using merge_test::give;
using merge_test::header;
using merge_test::Invariants;
using merge_test::take;

class Feeder {
 public:
  explicit Feeder(const TapeHeader& h) : merger_(h) {}

  void add(std::uint32_t thread, std::vector<RecordedEvent> events) {
    interval_ += events.size();
    fed_ += events.size();
    merger_.add(ThreadIndex{thread}, std::move(events));
    EXPECT_LE(merger_.load().buffered_events, interval_ + interval_before_);
    drain();
  }
  void watermark(std::uint64_t tick, std::int64_t ns) {
    interval_before_ = std::exchange(interval_, 0);
    merger_.watermark({tick, ns});
    drain();
    EXPECT_LE(merger_.load().buffered_events, interval_before_) << "what is older must have gone out";
  }
  void finish() {
    merger_.finish(true);
    drain();
    invariants_.check_end(merger_);
  }
  Merger& merger() { return merger_; }
  [[nodiscard]] std::uint64_t fed() const { return fed_; }
  [[nodiscard]] double steps_per_event() const {
    return static_cast<double>(merger_.load().steps) / static_cast<double>(fed_);
  }

 private:
  void drain() {
    for (merger_.take(batch_, 1000); !batch_.empty(); merger_.take(batch_, 1000)) {
      if (!testing::Test::HasFatalFailure()) {
        invariants_.check(batch_);
      }
      batch_.clear();
    }
  }

  Merger merger_;
  Invariants invariants_;
  std::vector<Event> batch_;
  std::size_t interval_ = 0;
  std::size_t interval_before_ = 0;
  std::uint64_t fed_ = 0;
};

constexpr Kind kinds[] = {Kind::malloc, Kind::free,        Kind::realloc,         Kind::operator_delete,
                          Kind::calloc, Kind::malloc_trim, static_cast<Kind>(77), Kind::reallocarray};

// Bits of the seed decide how random each field is.
RecordedEvent random_event(std::mt19937_64& random, std::uint64_t style, std::uint64_t& stamp) {
  RecordedEvent e;
  e.kind = kinds[random() % std::size(kinds)];
  e.phase = static_cast<Phase>(random() % 4);
  e.address = (style & 1) != 0 ? random() % 8 * 16 : random() % 3000 * 16;
  e.size_bytes = random() % 3;
  switch (style >> 1 & 3) {
    case 0:
      stamp += random() % 100;
      e.stamp = stamp;
      break;
    case 1:
      e.stamp = random();  // not even ascending
      break;
    case 2:
      e.stamp = 7;
      break;
    default:
      e.stamp = random() % 1'000'000;
  }
  return e;
}

TEST(MergeGarbage, NeverBreaksTheInvariantsAndTakesAboutLinearTime) {
  for (std::uint64_t seed = 0; seed < 96 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    TapeHeader h = header();
    h.clock = static_cast<ClockSource>(seed % 3);
    h.ticks_per_second = seed % 5 == 0 ? -1.0 : 1e9;
    Feeder feeder(h);
    std::uint64_t stamp = 0;
    const std::uint32_t threads = seed % 7 == 0 ? 500 : 1 + static_cast<std::uint32_t>(random() % 10);
    while (feeder.fed() < 20'000 && !HasFailure()) {
      const std::uint64_t what = random() % 100;
      if (what < 80) {
        std::vector<RecordedEvent> events(1 + random() % (seed % 4 == 0 ? 1000 : 30));
        for (RecordedEvent& e : events) {
          e = random_event(random, seed / 4, stamp);
        }
        feeder.add(static_cast<std::uint32_t>(random() % threads), std::move(events));
      } else if (what < 95) {
        feeder.watermark(random() % 2 == 0 ? stamp : random(), static_cast<std::int64_t>(random()));
      } else if (what < 98) {
        feeder.merger().gap(
            {ThreadIndex{static_cast<std::uint32_t>(random() % threads)}, random() % 10, stamp});
      } else {
        feeder.merger().damaged();
      }
    }
    feeder.finish();
    EXPECT_LT(feeder.steps_per_event(), 150.0);
  }
}

// The worst cases for a merge that looks ahead, each twice as large: work must not quadruple.
template <typename F>
void expect_linear(F&& feed) {
  double per_event[2] = {};
  for (const std::size_t scale : {1, 4}) {
    Feeder feeder(header());
    feed(feeder, scale);
    feeder.finish();
    per_event[scale == 4] = feeder.steps_per_event();
  }
  EXPECT_LT(per_event[1], 2.0 * per_event[0] + 10.0);
}

TEST(MergeGarbage, ACrowdOfThreadsAtOneAddressIsLinear) {
  expect_linear([](Feeder& feeder, std::size_t scale) {
    for (std::uint32_t t = 0; t < 2000 * scale; ++t) {
      feeder.add(t, {take(1000 + t, 0xA0), take(1001 + t, 0xB0)});
    }
  });
}

TEST(MergeGarbage, AcquiresOfOneAddressOverAndOverAreLinear) {
  expect_linear([](Feeder& feeder, std::size_t scale) {
    for (std::uint32_t t = 0; t < 4; ++t) {
      std::vector<RecordedEvent> events;
      for (std::uint64_t i = 0; i < 5000 * scale; ++i) {
        events.push_back(take(i, 0xA0));
      }
      feeder.add(t, std::move(events));
    }
  });
}

TEST(MergeGarbage, ReleasesThatWaitInCirclesAreLinear) {
  expect_linear([](Feeder& feeder, std::size_t scale) {
    const auto threads = static_cast<std::uint32_t>(500 * scale);
    for (std::uint32_t t = 0; t < threads; ++t) {
      const std::uint64_t own = 0x10000 + 16ULL * t;
      const std::uint64_t next = 0x10000 + 16ULL * ((t + 1) % threads);
      // Each acquires what the next one holds, and releases its own only afterwards.
      feeder.add(t, {take(t, own), take(100'000 + t, next), give(100'000 + t, own), give(200'000, next)});
    }
  });
}

TEST(MergeGarbage, AddressesThatShareTheirLowBitsAreLinear) {
  expect_linear([](Feeder& feeder, std::size_t scale) {
    std::vector<RecordedEvent> events;
    for (std::uint64_t i = 1; i < 20'000 * scale; ++i) {
      events.push_back(take(i, i << 40));
    }
    feeder.add(0, std::move(events));
  });
}

TEST(MergeGarbage, ReallocsThatNeverEndAreKeptInBoundedNumber) {
  Feeder feeder(header());
  std::vector<RecordedEvent> events;
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    events.push_back(merge_test::resize(Phase::begin, i, 0));
  }
  feeder.add(0, std::move(events));
  feeder.finish();
  EXPECT_EQ(feeder.merger().report().open_reallocs, 10'000U);
}

TEST(MergeGarbage, ClocksOfAnyRateGiveTimesThatNeitherOverflowNorRunBackwards) {
  for (const double rate : {0.0, -3.0, 1e-300, 1e300, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    for (const std::uint64_t start : {std::uint64_t{0}, ~std::uint64_t{0} - 5}) {
      TapeHeader h = header();
      h.ticks_per_second = rate;
      h.start_tick = start;
      Feeder feeder(h);
      feeder.add(0, {take(0, 0xA0), take(1ULL << 40, 0xB0), take(~std::uint64_t{0}, 0xC0)});
      feeder.watermark(1ULL << 50, std::numeric_limits<std::int64_t>::max());
      feeder.add(0, {take(1ULL << 51, 0xD0)});
      feeder.watermark(1ULL << 51, std::numeric_limits<std::int64_t>::min());
      feeder.watermark(~std::uint64_t{0}, 5);
      feeder.finish();
    }
  }
}

}  // namespace
}  // namespace heaptape::format
