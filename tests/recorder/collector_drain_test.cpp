#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/recorder/collector_fixture.h"

namespace heaptape::collector {
namespace {

using testing::SizeIs;

TEST(Drain, EveryThreadsEventsComeBackInOrderWhateverTheyHold) {
  constexpr std::uint64_t seed = 20'240'601;
  SCOPED_TRACE(seed);
  constexpr std::uint32_t thread_count = 4;
  constexpr std::size_t events_each = 200'000;
  DrainedSegment d(16);  // few rings: threads chain, and wait
  std::atomic<std::uint32_t> running = thread_count;
  std::atomic<std::uint64_t> chained = 0;
  std::vector<std::jthread> threads;
  for (std::uint32_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      Producer producer(d.segment.view(), 100 + t);
      RandomEvents events(seed + t);
      for (std::size_t i = 0; i < events_each; ++i) {
        producer.write(events.next());
      }
      producer.end(~std::uint64_t{0});
      chained += producer.chained();
      running -= 1;
    });
  }
  while (running != 0) {
    (void)d.pass();
  }
  (void)d.pass();
  EXPECT_EQ(d.drain.damaged_rings(), 0U);
  const format::TapeReader reader = d.read_back();
  const Streams streams = streams_of(reader);
  ASSERT_THAT(streams, SizeIs(thread_count));
  for (std::uint32_t t = 0; t < thread_count; ++t) {
    RandomEvents events(seed + t);
    const auto& stream = streams.at(100 + t);
    ASSERT_THAT(stream, SizeIs(events_each));
    for (std::size_t i = 0; i < events_each; ++i) {
      ASSERT_EQ(stream[i], as_recorded(events.next())) << "thread " << t << ", event " << i;
    }
    EXPECT_NE(reader.info().threads[t].end_tick, 0U);
  }
  EXPECT_GT(chained, 0U) << "the test never chained: make it larger";
}

TEST(Drain, AChainIsFollowedWithinOnePassWhereverItsRingsLie) {
  DrainedSegment d;
  Producer filler(d.segment.view(), 1);
  Producer producer(d.segment.view(), 2);
  RandomEvents events(7);
  filler.write(events.next());  // takes ring 0
  std::vector<format::RecordedEvent> written;
  while (producer.chained() < 3) {
    const ring::RawEvent e = events.next();
    written.push_back(as_recorded(e));
    producer.write(e);
    if (producer.chained() == 2) {
      filler.end(0);  // ring 0 becomes free once drained, and may be the next of the chain
    }
  }
  const Drain::Pass pass = d.pass();
  EXPECT_EQ(pass.events, written.size() + 1);
  EXPECT_EQ(d.pass().events, 0U);
  EXPECT_EQ(streams_of(d.read_back()).at(2), written);
}

TEST(Drain, RingsAreOfferedAgainOnceTheirThreadHasEnded) {
  DrainedSegment d(16);
  RandomEvents events(7);
  for (std::uint32_t t = 0; t < 1000; ++t) {
    Producer producer(d.segment.view(), 1000 + t);
    producer.write(events.next());
    producer.end(~std::uint64_t{0});
    (void)d.pass();
  }
  EXPECT_EQ(d.threads.count(), 1000U);
  EXPECT_EQ(d.segment.high(), Segment::smallest_reserve + 1);
  EXPECT_THAT(streams_of(d.read_back()), SizeIs(1000));
}

TEST(Drain, ThreadsAreNumberedInOrderOfTheirStartNotOfTheirRings) {
  DrainedSegment d;
  ring::RingWriter late;
  ring::RingWriter early;
  const std::uint32_t first = ring::claim_ring(d.segment.view(), 0, 1);
  const std::uint32_t second = ring::claim_ring(d.segment.view(), 0, 2);
  ASSERT_LT(first, second);
  late.open(d.segment.view().ring(first), false);
  early.open(d.segment.view().ring(second), false);
  ASSERT_EQ(late.start(1, 2000), ring::WriteStatus::ok);
  ASSERT_EQ(early.start(2, 1000), ring::WriteStatus::ok);
  (void)d.pass();
  EXPECT_EQ(d.threads.tid(format::ThreadIndex{0}), 2U);
  EXPECT_EQ(d.threads.tid(format::ThreadIndex{1}), 1U);
}

TEST(Drain, DroppedEventsAreAGapAtTheirPlace) {
  DrainedSegment d;
  Producer producer(d.segment.view(), 5);
  RandomEvents events(3);
  for (int i = 0; i < 10; ++i) {
    producer.write(events.next());
  }
  for (int i = 0; i < 4; ++i) {
    producer.drop();
  }
  const ring::RawEvent after = events.next();
  producer.write(after);
  producer.drop();
  producer.end(after.stamp + 1);
  (void)d.pass();
  const format::TapeReader reader = d.read_back();
  ASSERT_THAT(reader.info().gaps, SizeIs(2));
  EXPECT_EQ(reader.info().gaps[0].lost_events, 4U);
  EXPECT_EQ(reader.info().gaps[0].stamp, after.stamp);
  EXPECT_EQ(reader.info().gaps[1].lost_events, 1U);
  EXPECT_THAT(streams_of(reader).at(5), SizeIs(11));
}

TEST(Drain, AThreadThatVanishedGivesItsRingBackWithAllItsEvents) {
  DrainedSegment d;
  RandomEvents events(3);
  {
    Producer vanishes(d.segment.view(), 5);
    vanishes.write(events.next());
    Producer stays(d.segment.view(), 6);
    stays.write(events.next());
    (void)d.pass();
    vanishes.write(events.next());
  }
  const auto orphans = d.drain.orphans(Drain::Among::all, [](std::uint32_t tid) { return tid != 5; });
  ASSERT_THAT(orphans, SizeIs(1));
  (void)d.pass();
  d.drain.take_back(orphans, monotonic_ns());
  EXPECT_EQ(d.segment.state(orphans[0]), ring::RingState::free);
  Producer next(d.segment.view(), 8);
  next.write(events.next());
  EXPECT_EQ(next.ring(), orphans[0]);
  (void)d.pass();
  EXPECT_EQ(d.drain.damaged_rings(), 0U);
  const Streams streams = streams_of(d.read_back());
  EXPECT_THAT(streams.at(5), SizeIs(2));
  EXPECT_THAT(streams.at(8), SizeIs(1));
}

TEST(Drain, AThreadsSecondRingComesBehindItsFirstWhereverTheyLie) {
  DrainedSegment d;
  RandomEvents events(11);
  (void)d.pass();
  Producer other(d.segment.view(), 1);
  other.write(events.next());
  Producer first(d.segment.view(), 2);
  const ring::RawEvent a = events.next();
  const ring::RawEvent b = events.next();
  const ring::RawEvent c = events.next();
  first.write(a);
  other.end(~std::uint64_t{0});
  (void)d.pass();  // the other's ring, a lower one, is free again
  first.write(b);
  first.end(b.stamp);
  Producer second(d.segment.view(), 2);
  second.write(c);
  ASSERT_LT(second.ring(), first.ring());
  (void)d.pass();
  EXPECT_THAT(streams_of(d.read_back()).at(2),
              testing::ElementsAre(as_recorded(a), as_recorded(b), as_recorded(c)));
}

TEST(Drain, ARingOfAnEndingThreadIsReadUntilTheThreadIsGone) {
  DrainedSegment d;
  RandomEvents events(12);
  Producer thread(d.segment.view(), 5);
  thread.write(events.next());
  d.segment.view().state(thread.ring()).store(static_cast<std::uint32_t>(ring::RingState::ending));
  Producer lives(d.segment.view(), 6);
  lives.write(events.next());
  (void)d.pass();
  const auto all_live = [](std::uint32_t) { return true; };
  const auto none_lives = [](std::uint32_t) { return false; };
  EXPECT_THAT(d.drain.orphans(Drain::Among::ending, all_live), SizeIs(0));
  const ring::RawEvent last = events.next();
  thread.write(last);
  const auto orphans = d.drain.orphans(Drain::Among::ending, none_lives);
  ASSERT_THAT(orphans, testing::ElementsAre(thread.ring()));
  (void)d.pass();
  d.drain.take_back(orphans, monotonic_ns());
  EXPECT_EQ(d.segment.state(thread.ring()), ring::RingState::free);
  const format::TapeReader reader = d.read_back();
  EXPECT_THAT(streams_of(reader).at(5), SizeIs(2));
  EXPECT_EQ(reader.info().threads.at(0).end_tick, last.stamp);
}

TEST(Drain, WhateverAKilledProcessHadPublishedIsOnTheTape) {
  constexpr std::uint64_t seed = 99;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", round " << round);
    DrainedSegment d(12);
    auto* written = static_cast<std::atomic<std::uint64_t>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(written, MAP_FAILED);
    const std::uint64_t kill_at = random() % 100'000;
    const pid_t child = ::fork();
    if (child == 0) {
      Producer producer(d.segment.view(), 5);
      RandomEvents events(seed);
      for (;;) {
        producer.write(events.next());
        written->fetch_add(1, std::memory_order_relaxed);
      }
    }
    while (written->load(std::memory_order_relaxed) < kill_at) {
      (void)d.pass();
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (d.pass().events != 0) {
    }
    EXPECT_EQ(d.drain.damaged_rings(), 0U);
    const std::uint64_t counted = written->load();
    ::munmap(written, 4096);
    const Streams streams = streams_of(d.read_back());
    const std::vector<format::RecordedEvent> stream =
        streams.contains(5) ? streams.at(5) : std::vector<format::RecordedEvent>{};
    // It may have died between publishing and counting.
    EXPECT_GE(stream.size(), counted);
    EXPECT_LE(stream.size(), counted + 1);
    RandomEvents events(seed);
    for (std::size_t i = 0; i < stream.size(); ++i) {
      ASSERT_EQ(stream[i], as_recorded(events.next())) << i;
    }
  }
}

TEST(Drain, ADamagedRingIsAGapAndItsThreadNeverWaits) {
  DrainedSegment d;
  Producer producer(d.segment.view(), 5);
  RandomEvents events(3);
  for (int i = 0; i < 10; ++i) {
    producer.write(events.next());
  }
  ring::Ring& ring = d.segment.view().ring(producer.ring());
  const std::uint64_t head = ring.header.head.load();
  ring.words[head & ring::ring_mask].store(~std::uint64_t{0} >> 1);
  ring.words[(head + 1) & ring::ring_mask].store(0);
  ring.header.head.store(head + 2);
  (void)d.pass();
  EXPECT_EQ(d.drain.damaged_rings(), 1U);
  Producer healthy(d.segment.view(), 6);
  for (int i = 0; i < 100'000; ++i) {  // many rings full: would never end if nothing made room
    producer.write(events.next());
    if (i % 1000 == 0) {
      (void)d.pass();
    }
  }
  healthy.write(events.next());
  (void)d.pass();
  const format::TapeReader reader = d.read_back();
  EXPECT_FALSE(reader.info().gaps.empty());
  const Streams streams = streams_of(reader);
  EXPECT_GE(streams.at(5).size(), 10U);
  EXPECT_THAT(streams.at(6), SizeIs(1));
}

TEST(Drain, GarbageEverywhereIsDamageAndNeverTheCollectorsEnd) {
  constexpr std::uint64_t seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  DrainedSegment d(24);
  std::uint64_t damaged = 0;
  for (int round = 0; round < 20000; ++round) {
    const ring::SegmentView view = d.segment.view();
    const auto index = static_cast<std::uint32_t>(random() % d.segment.high());
    ring::Ring& ring = view.ring(index);
    const std::uint64_t tail = ring.header.tail.load();
    // Plausible words, with the right opcodes often enough that the reader gets into all its corners.
    for (std::uint64_t i = 0; i < 64; ++i) {
      const std::uint64_t kind = random() % 4;
      std::uint64_t word = random();
      if (kind == 0) {
        word = ring::escape_word(ring::Escape{static_cast<std::uint8_t>(random() % 24)}, random() % 26);
      } else if (kind == 1) {
        word = ring::call_bits(ring::Call{static_cast<std::uint8_t>(random() % 50)}, ring::Phase::whole);
      }
      ring.words[(tail + i) & ring::ring_mask].store(word);
    }
    if (random() % 2 == 0) {
      ring.words[tail & ring::ring_mask].store(ring::escape_word(
          random() % 2 == 0 ? ring::Escape::thread_start : ring::Escape::carry_on, random() % 26));
    }
    ring.header.head.store(random() % 8 == 0 ? random() : tail + random() % 65);
    view.state(index).store(static_cast<std::uint32_t>(random() % 6));
    if (random() % 16 == 0) {
      d.segment.control().waiting_producers.store(static_cast<std::uint32_t>(random()));
    }
    (void)d.pass();
    damaged = d.drain.damaged_rings();
  }
  EXPECT_GT(damaged, 100U);
  const format::TapeReader reader = d.read_back();
  EXPECT_FALSE(reader.info().damage.any());
}

TEST(Drain, AnErrorOfTheTapeIsReturned) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  DrainedSegment d;
  rlimit small = before;
  small.rlim_cur = 100'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Producer producer(d.segment.view(), 5);
  RandomEvents events(3);
  bool failed = false;
  for (int i = 0; i < 1'000'000 && !failed; ++i) {
    producer.write(events.next());
    if (i % 1000 == 0) {
      failed = !d.drain.pass(monotonic_ns());
    }
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_TRUE(failed);
}

TEST(Segment, ItsRingsArePlacedInMemoryBeforeTheyAreOffered) {
  Segment segment = Segment::create({.ring_count = 64}).value();
  EXPECT_EQ(segment.high(), Segment::first_reserve);
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(segment.state(i), i < segment.high() ? ring::RingState::free : ring::RingState::absent);
  }
  EXPECT_EQ(segment.control().ring_high.load(), segment.high());
  EXPECT_EQ(segment.welcome().segment_bytes, segment.control().segment_bytes);
}

TEST(Segment, TheReserveFollowsDemandUntilTheSegmentIsExhausted) {
  Segment segment = Segment::create({.ring_count = 60}).value();
  for (std::uint32_t i = 0; i <= Segment::first_passes; ++i) {
    segment.keep_reserve();
  }
  EXPECT_EQ(segment.high(), Segment::smallest_reserve);
  std::uint32_t claimed = 0;
  while (ring::claim_ring(segment.view(), 0, 1) != 60) {
    claimed += 1;
    segment.keep_reserve();
    if (claimed < 52) {
      ASSERT_GE(segment.high() - claimed, Segment::smallest_reserve);
      EXPECT_EQ(segment.control().exhausted.load(), 0U);
    }
  }
  EXPECT_EQ(claimed, 60U);
  EXPECT_EQ(segment.control().exhausted.load(), 1U);
  segment.offer(7);
  segment.keep_reserve();
  EXPECT_EQ(segment.control().exhausted.load(), 0U);
}

TEST(Segment, ThreadsThatWaitFindARingEach) {
  Segment segment = Segment::create({.ring_count = 600}).value();
  segment.control().waiting_producers = 300;
  EXPECT_EQ(segment.keep_reserve(), 300U);
  segment.control().waiting_producers = ~0U;  // whatever the program writes there
  EXPECT_EQ(segment.keep_reserve(), 600U);
}

TEST(Segment, IsNotExhaustedWhileRingsThatThreadsHaveLeftWillBeFreeSoon) {
  Segment segment = Segment::create({.ring_count = 8}).value();
  for (std::uint32_t i = 0; i < 8; ++i) {
    segment.keep_reserve();
    (void)ring::claim_ring(segment.view(), 0, 1);
  }
  segment.keep_reserve();
  EXPECT_EQ(segment.control().exhausted.load(), 1U);
  ring::leave_ring(segment.view(), 3, ring::RingState::released);
  EXPECT_EQ(segment.keep_reserve(), 0U);
  EXPECT_EQ(segment.control().exhausted.load(), 0U);
}

TEST(Segment, AReserveThatRanOutIsDoubledForGood) {
  Segment segment = Segment::create({.ring_count = 600}).value();
  for (std::uint32_t i = 0; i <= Segment::first_passes; ++i) {
    segment.keep_reserve();
  }
  std::vector<std::uint32_t> claimed;
  for (std::uint32_t i = 0; i < Segment::smallest_reserve; ++i) {
    claimed.push_back(ring::claim_ring(segment.view(), 0, 1));
  }
  segment.keep_reserve();
  EXPECT_EQ(segment.high(), 3 * Segment::smallest_reserve);
  for (const std::uint32_t ring : claimed) {
    segment.offer(ring);
  }
  segment.keep_reserve();
  EXPECT_EQ(segment.high(), 3 * Segment::smallest_reserve);
}

TEST(Segment, LimitsOfAddressSpaceAndFilesMeanFewerRings) {
  constexpr std::uint64_t unlimited = ~std::uint64_t{0};
  EXPECT_EQ(ring_count_within(unlimited, unlimited), ring::default_ring_count);
  EXPECT_EQ(ring_count_within(0, unlimited), Segment::smallest_reserve);
  EXPECT_LT(ring::segment_bytes_for(ring_count_within(256U << 20, unlimited)), std::size_t{20} << 20);
  EXPECT_LT(ring::segment_bytes_for(ring_count_within(unlimited, 8U << 20)), std::size_t{8} << 20);
}

TEST(Threads, AThreadThatWritesAgainRightAfterItsEndKeepsItsIndex) {
  Threads threads;
  const auto first = threads.start(7, 10, 1000);
  threads.end(first, 20, 2000);
  EXPECT_EQ(threads.start(7, 30, 3000), first);
  threads.end(first, 40, 4000);
  const auto another = threads.start(7, 50, 10'000'000'000);
  EXPECT_NE(another, first);
  EXPECT_EQ(threads.count(), 2U);
}

TEST(Threads, NamesAreReadWhileThreadsLiveAndToldOnce) {
  Threads threads;
  (void)threads.start(static_cast<std::uint32_t>(::gettid()), 1, 1);
  threads.read_names(::getpid());
  const auto infos = threads.take_unsaved();
  ASSERT_THAT(infos, SizeIs(1));
  EXPECT_FALSE(infos[0].name.empty());
  threads.read_names(::getpid());
  EXPECT_TRUE(threads.take_unsaved().empty());
}

}  // namespace
}  // namespace heaptape::collector
