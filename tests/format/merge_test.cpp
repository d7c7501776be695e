#include "format/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/format/merge_support.h"

namespace heaptape::format {
namespace {

using merge_test::give;
using merge_test::header;
using merge_test::Invariants;
using merge_test::merged;
using merge_test::resize;
using merge_test::take;
using merge_test::whole;

// Merges and checks the invariants.
std::vector<Event> orderly(Merger& merger, std::vector<std::vector<RecordedEvent>> streams,
                           bool complete = true) {
  std::vector<Event> events = merged(merger, std::move(streams), complete);
  Invariants invariants;
  invariants.check(events);
  invariants.check_end(merger);
  return events;
}

std::vector<std::uint32_t> threads_of(const std::vector<Event>& events) {
  std::vector<std::uint32_t> threads;
  for (const Event& e : events) {
    threads.push_back(static_cast<std::uint32_t>(e.thread));
  }
  return threads;
}

TEST(Merge, OrdersThreadsByTheirStamps) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0), give(40, 0xA0)}, {take(20, 0xB0), give(30, 0xB0)}});
  EXPECT_THAT(threads_of(events), testing::ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(events[0].object, ObjectId{1});
  EXPECT_EQ(events[0].size_bytes, 16U);
  EXPECT_EQ(events[2].released, ObjectId{2});
  EXPECT_EQ(events[2].released_size_bytes, 16U);
  EXPECT_EQ(events[3].released, ObjectId{1});
  EXPECT_EQ(merger.report(), MergeReport{.events = 4});
}

TEST(Merge, HoldsAnAcquireBackUntilItsReleaseHasCome) {
  Merger merger(header());
  const auto events =
      orderly(merger, {{take(10, 0xA0), give(100, 0xA0)}, {take(95, 0xA0), take(96, 0xB0), give(200, 0xA0)}});
  EXPECT_THAT(threads_of(events), testing::ElementsAre(0, 0, 1, 1, 1));
  EXPECT_TRUE(events[2].has(EventFlag::repaired));
  EXPECT_FALSE(events[3].has(EventFlag::repaired)) << "it only waited behind its own thread";
  EXPECT_EQ(events[1].released, ObjectId{1});
  EXPECT_EQ(events[4].released, ObjectId{2});
  EXPECT_EQ(merger.report().repairs, 1U);
  EXPECT_EQ(merger.report().contradictions, 0U);
}

TEST(Merge, HoldsAReleaseBackUntilItsAcquireHasCome) {
  Merger merger(header());
  // Thread 1 waits for thread 0's release; its next block has gone to thread 2 meanwhile.
  const auto events = orderly(
      merger, {{take(10, 0xA0), give(100, 0xA0)}, {take(50, 0xA0), take(51, 0xB0)}, {give(99, 0xB0)}});
  EXPECT_THAT(threads_of(events), testing::ElementsAre(0, 0, 1, 1, 2));
  EXPECT_TRUE(events[4].has(EventFlag::repaired));
  EXPECT_EQ(events[4].released, events[3].object);
  EXPECT_EQ(merger.report().repairs, 2U);
  EXPECT_EQ(merger.report().unknown_releases, 0U);
}

TEST(Merge, AMissingReleaseIsImpliedRightBeforeTheNextAcquire) {
  Merger merger(header());
  const auto events =
      orderly(merger, {{take(10, 0xA0)}, {take(20, 0xA0), give(30000, 0xA0)}, {take(25, 0xC0)}});
  ASSERT_EQ(events.size(), 5U);
  EXPECT_TRUE(events[1].has(EventFlag::implied));
  EXPECT_FALSE(events[1].has(EventFlag::cut));
  EXPECT_EQ(events[1].kind, Kind::free);
  EXPECT_EQ(events[1].released, ObjectId{1});
  EXPECT_EQ(events[1].released_address, 0xA0U);
  EXPECT_EQ(events[2].object, ObjectId{2});
  EXPECT_FALSE(events[2].has(EventFlag::repaired));
  EXPECT_EQ(events[4].released, ObjectId{2});
  EXPECT_EQ(merger.report(), (MergeReport{.events = 4, .contradictions = 1}));
}

TEST(Merge, AReleaseThatALaterAcquireNeedsIsNotTakenForAMissingOne) {
  Merger merger(header());
  // The release of thread 0's block is missing. Thread 2 frees what thread 1 got, shortly afterwards;
  // were that taken for the missing one, thread 0's next acquire would be left without any.
  const auto events =
      orderly(merger, {{take(10, 0xA0), take(5'000'000, 0xA0)}, {take(20, 0xA0)}, {give(4000, 0xA0)}});
  ASSERT_EQ(events.size(), 5U);
  EXPECT_TRUE(events[1].has(EventFlag::implied));
  EXPECT_EQ(events[1].released, ObjectId{1});
  EXPECT_EQ(events[3].released, ObjectId{2});
  EXPECT_EQ(merger.report().contradictions, 1U);
  EXPECT_EQ(merger.report().repairs, 0U);
}

TEST(Merge, AnAcquireIsNotHeldBackPastItsThreadsNextRelease) {
  Merger merger(header());
  // The stamp of the release at 30 is fenced: the acquire before it cannot have come after 40000.
  const auto events = orderly(
      merger, {{take(10, 0xA0)}, {take(15, 0xB0), take(20, 0xA0), give(30, 0xB0)}, {give(40000, 0xA0)}});
  EXPECT_EQ(merger.report().contradictions, 1U);
  EXPECT_EQ(events.back().released, ObjectId{3});
}

TEST(Merge, NothingWaitsLongerThanAStampCanBeEarly) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0), take(20, 0xD0), give(90'000'000, 0xA0)},
                                       {take(1'000'000, 0xA0), take(1'000'001, 0xB0)},
                                       {take(2'000'000, 0xC0)}});
  EXPECT_EQ(merger.report().contradictions, 1U);
  EXPECT_THAT(threads_of(events), testing::ElementsAre(0, 0, 1, 1, 1, 2, 0));
}

TEST(Merge, AReleaseOfAnUnknownBlockIsSaidAndReleasesNothing) {
  Merger merger(header());
  const auto events = orderly(merger, {{give(10, 0xA0), take(20, 0xA0), give(30, 0xA0)}});
  EXPECT_TRUE(events[0].has(EventFlag::unknown_release));
  EXPECT_EQ(events[0].released, ObjectId::none);
  EXPECT_EQ(events[0].released_address, 0xA0U);
  EXPECT_FALSE(events[2].has(EventFlag::unknown_release));
  EXPECT_EQ(merger.report(), (MergeReport{.events = 3, .unknown_releases = 1}));
}

TEST(Merge, ALostAcquireIsOneUnknownReleaseAlthoughItsAddressIsTakenAgain) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(5, 0xB0), give(20, 0xA0)}, {take(25, 0xA0)}, {give(300, 0xA0)}});
  EXPECT_TRUE(events[1].has(EventFlag::unknown_release));
  EXPECT_EQ(events[3].released, events[2].object);
  EXPECT_EQ(merger.report().unknown_releases, 1U);
}

TEST(Merge, AMovingReallocIsOneEventAtItsEndAndKeepsItsSlot) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0), take(11, 0xB0), resize(Phase::begin, 20, 0xA0, 64),
                                        resize(Phase::end, 40, 0xC0, 64)},
                                       {take(30, 0xA0, 8)}});
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[2].kind, Kind::malloc) << "another thread got the old address first";
  const Event& moved = events[3];
  EXPECT_EQ(moved.kind, Kind::realloc);
  EXPECT_EQ(moved.object, ObjectId{4});
  EXPECT_EQ(moved.released, ObjectId{1});
  EXPECT_EQ(moved.slot, events[0].slot);
  EXPECT_EQ(moved.released_slot, events[0].slot);
  EXPECT_EQ(moved.address, 0xC0U);
  EXPECT_EQ(moved.released_address, 0xA0U);
  EXPECT_EQ(moved.size_bytes, 64U);
  EXPECT_EQ(moved.released_size_bytes, 16U);
  EXPECT_FALSE(moved.has(EventFlag::in_place));
  EXPECT_EQ(merger.report(), MergeReport{.events = 4});
}

TEST(Merge, AReallocThatReturnsItsArgumentIsInPlace) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0), resize(Phase::begin, 20, 0xA0),
                                        resize(Phase::end, 30, 0xA0), give(40, 0xA0)}});
  EXPECT_TRUE(events[1].has(EventFlag::in_place));
  EXPECT_EQ(events[2].released, events[1].object);
  EXPECT_EQ(events[2].released_size_bytes, 32U);
}

TEST(Merge, AFailedReallocReleasesNothing) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0), resize(Phase::begin, 20, 0xA0),
                                        resize(Phase::failed, 30, 0), give(40, 0xA0)}});
  EXPECT_TRUE(events[1].has(EventFlag::failed));
  EXPECT_EQ(events[1].object, ObjectId::none);
  EXPECT_EQ(events[1].released, ObjectId::none);
  EXPECT_EQ(events[1].released_address, 0xA0U);
  EXPECT_EQ(events[2].released, ObjectId{1});
  EXPECT_EQ(merger.report(), MergeReport{.events = 3});
}

TEST(Merge, AReallocToNothingFreesAndOneOfNullAcquires) {
  Merger merger(header());
  const auto events =
      orderly(merger, {{resize(Phase::begin, 10, 0), resize(Phase::end, 11, 0xA0),
                        resize(Phase::begin, 20, 0xA0, 0), resize(Phase::end, 30, 0, 0), take(40, 0xA0)}});
  EXPECT_TRUE(events[0].has(EventFlag::null_argument));
  EXPECT_EQ(events[0].object, ObjectId{1});
  EXPECT_TRUE(events[1].has(EventFlag::freeing_realloc));
  EXPECT_EQ(events[1].object, ObjectId::none);
  EXPECT_EQ(events[1].released, ObjectId{1});
  EXPECT_EQ(events[2].slot, events[0].slot);
  EXPECT_EQ(merger.report(), MergeReport{.events = 3});
}

TEST(Merge, AReallocOfNullThatFailedIsAFailedCall) {
  Merger merger(header());
  const auto events = orderly(merger, {{resize(Phase::begin, 10, 0), resize(Phase::failed, 11, 0)}});
  EXPECT_TRUE(events[0].has(EventFlag::failed));
  EXPECT_TRUE(events[0].has(EventFlag::null_argument));
  EXPECT_EQ(merger.report().unknown_releases, 0U);
}

TEST(Merge, AReallocOfAnUnknownBlockAcquiresAFreshObject) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(5, 0xB0), resize(Phase::begin, 20, 0xA0),
                                        resize(Phase::end, 30, 0xC0), give(40, 0xC0)}});
  EXPECT_TRUE(events[1].has(EventFlag::unknown_release));
  EXPECT_EQ(events[1].released, ObjectId::none);
  EXPECT_EQ(events[1].released_address, 0xA0U);
  EXPECT_EQ(events[1].object, ObjectId{2});
  EXPECT_NE(events[1].slot, events[0].slot);
  EXPECT_EQ(events[2].released, ObjectId{2});
  EXPECT_EQ(merger.report().unknown_releases, 1U);
}

TEST(Merge, AReallocThatNeverEndedIsSaidOnceAndItsObjectLives) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0), resize(Phase::begin, 20, 0xA0, 99)}});
  EXPECT_TRUE(events[1].has(EventFlag::unfinished));
  EXPECT_EQ(events[1].size_bytes, 99U);
  EXPECT_EQ(events[1].released, ObjectId::none);
  EXPECT_EQ(merger.report(), (MergeReport{.events = 2, .open_reallocs = 1}));
}

TEST(Merge, OtherEventsOfTheThreadMayComeBetweenBeginAndEnd) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0), resize(Phase::begin, 20, 0xA0, 64), take(21, 0xB0),
                                        resize(Phase::begin, 22, 0xB0, 48), resize(Phase::end, 23, 0xD0, 48),
                                        give(24, 0xD0), resize(Phase::end, 25, 0xC0, 64), give(26, 0xC0)}});
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[2].released, ObjectId{2});
  EXPECT_EQ(events[4].released, ObjectId{1});
  EXPECT_EQ(events[4].size_bytes, 64U);
  EXPECT_EQ(merger.report(), MergeReport{.events = 6});
}

TEST(Merge, AnEndWithoutABeginIsCountedAsUnknown) {
  Merger merger(header());
  const auto events = orderly(merger, {{resize(Phase::end, 10, 0xA0), give(20, 0xA0)}});
  EXPECT_TRUE(events[0].has(EventFlag::unknown_release));
  EXPECT_EQ(events[1].released, events[0].object);
}

TEST(Merge, NullArgumentsFailedCallsAndTrimsArePlainEvents) {
  Merger merger(header());
  const auto events = orderly(merger, {{give(10, 0), take(20, 0, 1U << 30), whole(Kind::malloc_trim, 30, 0),
                                        take(40, 0xA0, 0), give(50, 0xA0)}});
  EXPECT_TRUE(events[0].has(EventFlag::null_argument));
  EXPECT_TRUE(events[1].has(EventFlag::failed));
  EXPECT_EQ(events[1].size_bytes, 1U << 30);
  EXPECT_EQ(events[2].kind, Kind::malloc_trim);
  EXPECT_EQ(events[3].object, ObjectId{1}) << "malloc(0) yields an object";
  EXPECT_EQ(events[4].released, ObjectId{1});
  EXPECT_EQ(merger.report(), MergeReport{.events = 5});
}

TEST(Merge, TheSlotReleasedLastIsAcquiredFirst) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(1, 0xA0), take(2, 0xB0), take(3, 0xC0), give(4, 0xA0),
                                        give(5, 0xC0), take(6, 0xD0), take(7, 0xE0)}});
  EXPECT_EQ(events[5].slot, events[2].slot);
  EXPECT_EQ(events[6].slot, events[0].slot);
  EXPECT_EQ(merger.slots(), 3U);
}

TEST(Merge, TimeIsInterpolatedBetweenWatermarks) {
  TapeHeader h = header();
  h.start_tick = 1'000'000;
  Merger merger(h);
  merger.add(ThreadIndex{0}, {take(1'500'000, 0xA0), take(2'500'000, 0xB0), take(3'000'500, 0xC0)});
  merger.watermark({2'000'000, 4'000'000});
  merger.watermark({3'000'000, 5'000'000});
  merger.finish(true);
  std::vector<Event> events;
  merger.take(events);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].time_ns, 2'000'000);
  EXPECT_EQ(events[1].time_ns, 4'500'000);
  EXPECT_EQ(events[2].time_ns, 5'000'500) << "after the last one by the header's rate";
}

TEST(Merge, AnUntimedTapeStandsAtZero) {
  TapeHeader h;
  h.clock = ClockSource::none;
  Merger merger(h);
  const auto events = orderly(merger, {{take(1, 0xA0), give(2, 0xA0)}});
  EXPECT_EQ(events[1].time_ns, 0);
}

TEST(Merge, WhatComesTooLateGoesOutAtOnceAndIsCounted) {
  Merger merger(header());
  Invariants invariants;
  std::vector<Event> events;
  merger.add(ThreadIndex{0}, {take(10, 0xA0), take(1000, 0xB0)});
  merger.watermark({10'000'000, 10'000'000});
  merger.take(events);
  ASSERT_EQ(events.size(), 2U);
  merger.add(ThreadIndex{1}, {take(500, 0xC0), take(1001, 0xD0)});
  merger.watermark({20'000'000, 20'000'000});
  merger.take(events);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[2].time_ns, events[1].time_ns);
  EXPECT_EQ(merger.report().late_events, 1U);
  invariants.check(events);
}

TEST(Merge, NothingGoesOutBeforeAWatermarkAndNothingStaysAfterTheNext) {
  Merger merger(header());
  std::vector<Event> events;
  // Stamps of the far future: only the rule of watermarks gets them out.
  merger.add(ThreadIndex{0}, {take(1ULL << 60, 0xA0)});
  merger.add(ThreadIndex{1}, {take(1ULL << 59, 0xB0)});
  merger.take(events);
  EXPECT_TRUE(events.empty());
  merger.watermark({1000, 1000});
  merger.take(events);
  EXPECT_TRUE(events.empty());
  merger.watermark({2000, 2000});
  merger.take(events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].address, 0xB0U);
}

TEST(Merge, AHeldAcquireFindsItsReleaseBehindTheFrontier) {
  Merger merger(header());
  std::vector<Event> events;
  merger.add(ThreadIndex{0}, {take(10, 0xA0)});
  merger.add(ThreadIndex{1}, {take(900, 0xA0)});
  merger.watermark({1000, 1000});
  merger.add(ThreadIndex{0}, {give(1500, 0xA0)});
  merger.watermark({2000, 2000});
  merger.take(events);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_TRUE(events[2].has(EventFlag::repaired));
  EXPECT_EQ(merger.report().contradictions, 0U);
}

TEST(Merge, AfterAGapWhatIsMissingIsPutDownToIt) {
  Merger merger(header());
  std::vector<Event> events;
  merger.add(ThreadIndex{0}, {give(5, 0xE0), take(10'000'000, 0xA0)});
  merger.gap({ThreadIndex{0}, 7, 10'000'090});
  merger.add(ThreadIndex{0}, {take(10'000'100, 0xA0), give(10'000'110, 0xF0)});
  merger.finish(true);
  merger.take(events);
  ASSERT_EQ(events.size(), 5U);
  EXPECT_FALSE(events[0].has(EventFlag::cut)) << "unknown before the gap was";
  EXPECT_TRUE(events[2].has(EventFlag::implied) && events[2].has(EventFlag::cut));
  EXPECT_TRUE(events[4].has(EventFlag::unknown_release) && events[4].has(EventFlag::cut));
  EXPECT_EQ(
      merger.report(),
      (MergeReport{.events = 4, .unknown_releases = 1, .gaps = 1, .lost_events = 7, .implied_by_damage = 2}));
}

TEST(Merge, AReallocsEndThatAGapSwallowedIsNotFoundInALaterRealloc) {
  Merger merger(header());
  std::vector<Event> events;
  merger.add(ThreadIndex{0}, {take(10, 0xA0), resize(Phase::begin, 20, 0xA0, 50)});
  merger.gap({ThreadIndex{0}, 2, 90});
  merger.add(ThreadIndex{0}, {resize(Phase::end, 100, 0xB0, 70)});
  merger.finish(true);
  merger.take(events);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_TRUE(events[1].has(EventFlag::unknown_release));
  EXPECT_EQ(events[1].released, ObjectId::none);
  EXPECT_TRUE(events[2].has(EventFlag::unfinished));
  Invariants invariants;
  invariants.check(events);
  invariants.check_end(merger);
}

TEST(Merge, WhatIsMissingAtTheEndOfACutTapeIsPutDownToTheCut) {
  Merger merger(header());
  const auto events = orderly(merger, {{take(10, 0xA0)}, {take(20, 0xA0)}}, false);
  EXPECT_TRUE(events[1].has(EventFlag::implied) && events[1].has(EventFlag::cut));
  EXPECT_EQ(merger.report(), (MergeReport{.events = 2, .implied_by_damage = 1}));
}

TEST(Merge, EventsOfNoKnownKindAreDroppedAndCounted) {
  Merger merger(header());
  const auto events =
      orderly(merger, {{take(10, 0xA0), whole(static_cast<Kind>(99), 11, 0xA0), give(12, 0xA0)}});
  EXPECT_EQ(events.size(), 2U);
  EXPECT_EQ(merger.report().lost_events, 1U);
}

TEST(Merge, ThreadNumbersOfAnySizeAreKept) {
  Merger merger(header());
  std::vector<Event> events;
  merger.add(ThreadIndex{0xFFFFFFFF}, {take(10, 0xA0)});
  merger.add(ThreadIndex{7}, {give(20, 0xA0)});
  merger.finish(true);
  merger.take(events);
  EXPECT_THAT(threads_of(events), testing::ElementsAre(0xFFFFFFFF, 7));
}

TEST(Merge, BatchesAreAsSmallAsAskedForAndTellTheSame) {
  std::vector<std::vector<RecordedEvent>> streams(2);
  for (std::uint64_t i = 0; i < 100; ++i) {
    // Every third acquire finds its address taken: its missing release makes two events of it.
    streams[i % 2].push_back(take(10 * i, 0x1000 + 16 * (i % 3 == 0 ? 0 : i)));
  }
  Merger at_once(header());
  const auto all = orderly(at_once, streams);
  Merger by_three(header());
  for (std::uint32_t t = 0; t < 2; ++t) {
    by_three.add(ThreadIndex{t}, streams[t]);
  }
  by_three.finish(true);
  std::vector<Event> pieces;
  for (std::vector<Event> batch; by_three.take(batch, 3), !batch.empty(); batch.clear()) {
    EXPECT_LE(batch.size(), 3U);
    pieces.insert(pieces.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(pieces, all);
  EXPECT_EQ(by_three.report(), at_once.report());
}

}  // namespace
}  // namespace heaptape::format
