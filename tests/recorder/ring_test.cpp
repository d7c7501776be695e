// Writer and reader of one ring against each other: what goes in comes out.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "recorder/ring/reader.h"
#include "recorder/ring/writer.h"
#include "tests/recorder/ring_memory.h"

namespace heaptape::ring {
namespace {

// Everything published, the readers' room given back.
std::vector<RingRecord> drain(RingReader& reader) {
  std::vector<RingRecord> all;
  RingRecord buffer[100];
  for (;;) {
    const ReadResult r = reader.read(buffer, std::size(buffer));
    all.insert(all.end(), buffer, buffer + r.count);
    reader.release();
    if (r.status != ReadStatus::more) {
      return all;
    }
  }
}

RingRecord record_of(const RawEvent& e, bool with_sites = false) {
  RingRecord r;
  r.call = e.call;
  r.phase = e.phase;
  r.stamp = e.stamp;
  r.address = e.address;
  r.size_bytes = e.size_bytes;
  r.alignment = e.alignment;
  r.site = with_sites ? e.site : 0;
  return r;
}

RawEvent event(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t stamp) {
  RawEvent e;
  e.address = address;
  e.size_bytes = size_bytes;
  e.stamp = stamp;
  return e;
}

bool write_fast(RingWriter& w, const RawEvent& e) {
  const std::uint64_t alignment = e.alignment == 0 ? 0 : RingWriter::alignment_bits(e.alignment);
  return w.write_fast(call_bits(e.call, e.phase) | alignment, e.address, e.size_bytes, e.stamp, e.site);
}

// As the preload does it: fast if possible.
WriteStatus write_any(RingWriter& w, const RawEvent& e) {
  const bool plain = (e.alignment & (e.alignment - 1)) == 0 && e.alignment <= RingWriter::max_plain_alignment;
  return plain && write_fast(w, e) ? WriteStatus::ok : w.write(e);
}

class OneRing : public ::testing::Test {
 protected:
  OneRing() : memory_(4), reader_(memory_.view().ring(0), 4) { memory_.offer(4); }

  RingMemory memory_;
  RingReader reader_;
  RingWriter writer_;

  void open(bool with_sites = false) {
    ASSERT_EQ(claim_ring(memory_.view(), 0, 7), 0U);
    writer_.open(memory_.view().ring(0), with_sites);
    ASSERT_EQ(writer_.start(7, 1000), WriteStatus::ok);
  }
};

TEST_F(OneRing, GivesBackAnEventAsItWasWritten) {
  open();
  RawEvent e = event(0x7f0012345678, 4711, 1234);
  e.call = Call::aligned_alloc;
  e.alignment = 64;
  e.site = 99;
  ASSERT_TRUE(write_fast(writer_, e));
  const auto records = drain(reader_);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].type, RingRecord::Type::thread_start);
  EXPECT_EQ(records[0].value, 7U);
  EXPECT_EQ(records[0].stamp, 1000U);
  EXPECT_EQ(records[1], record_of(e));
}

TEST_F(OneRing, KeepsTheCallSiteWhenOpenedWithSites) {
  open(true);
  RawEvent e = event(0x10, 1, 2000);
  e.site = 0xffff'ffff'8123'4567;
  ASSERT_TRUE(write_fast(writer_, e));
  ASSERT_EQ(writer_.write(e), WriteStatus::ok);
  const auto records = drain(reader_);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1], record_of(e, true));
  EXPECT_EQ(records[2], record_of(e, true));
}

TEST_F(OneRing, EscapesWhatTwoWordsCannotHold) {
  open();
  const std::uint64_t beyond = std::uint64_t{1} << 32;
  std::vector<RawEvent> events = {
      event(1, beyond, 1001),
      event(2, UINT64_MAX, 1002),
      event(std::uint64_t{1} << 48, 3, 1003),
      event(UINT64_MAX, 4, beyond * 5 + 1),
      event(5, beyond - 1, beyond * 5 + 2),
      event(6, 6, UINT64_MAX),
  };
  events[2].alignment = 3;
  events[3].alignment = std::uint64_t{1} << 63;
  for (const RawEvent& e : events) {
    ASSERT_EQ(write_any(writer_, e), WriteStatus::ok);
  }
  const auto records = drain(reader_);
  ASSERT_EQ(records.size(), events.size() + 1);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(records[i + 1], record_of(events[i])) << "event " << i;
  }
}

TEST_F(OneRing, RefusesTheFastWayToWhatNeedsAnEscape) {
  open();
  EXPECT_FALSE(write_fast(writer_, event(1, std::uint64_t{1} << 32, 1001)));
  EXPECT_FALSE(write_fast(writer_, event(std::uint64_t{1} << 48, 1, 1001)));
  EXPECT_FALSE(write_fast(writer_, event(1, 1, std::uint64_t{1} << 32)));
  EXPECT_TRUE(write_fast(writer_, event(1, 1, 1001)));
}

TEST_F(OneRing, NeverLetsAStampOfAThreadRunBackwards) {
  open();
  for (const std::uint64_t stamp : {5000U, 4000U, 6000U}) {
    ASSERT_EQ(write_any(writer_, event(1, 1, stamp)), WriteStatus::ok);
  }
  const auto records = drain(reader_);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[1].stamp, 5000U);
  EXPECT_EQ(records[2].stamp, 5000U);
  EXPECT_EQ(records[3].stamp, 6000U);
}

TEST_F(OneRing, SaysFullInTimeAndGoesOnWhenReadAgain) {
  open();
  std::size_t written = 0;
  while (write_any(writer_, event(written, written, 1000 + written)) == WriteStatus::ok) {
    written += 1;
  }
  EXPECT_GT(written, ring_words / 2 - 20);
  EXPECT_TRUE(writer_.wants_reader());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(writer_.write(event(0, 0, 0)), WriteStatus::full);
    writer_.note_dropped();
  }
  auto records = drain(reader_);
  ASSERT_EQ(records.size(), written + 1);
  EXPECT_EQ(records.back().address, written - 1);

  ASSERT_EQ(writer_.write(event(1, 2, 1'000'000)), WriteStatus::ok);
  records = drain(reader_);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].type, RingRecord::Type::gap);
  EXPECT_EQ(records[0].value, 3U);
  EXPECT_EQ(records[1].address, 1U);
  EXPECT_FALSE(writer_.wants_reader());
}

TEST_F(OneRing, HasRoomForTheLastRecordsHoweverFullItIs) {
  for (std::uint64_t already = 0; already < 40; ++already) {
    RingMemory memory(2);
    RingReader reader(memory.view().ring(0), 2);
    // Every position of the ring's end relative to the records.
    memory.view().ring(0).header.head.store(already);
    memory.view().ring(0).header.tail.store(already);
    reader.restart_at_head();
    RingWriter writer;
    writer.open(memory.view().ring(0), true);
    ASSERT_EQ(writer.start(1, 1), WriteStatus::ok);
    std::size_t written = 0;
    while (write_any(writer, event(1, 1, 2)) == WriteStatus::ok) {
      written += 1;
    }
    writer.note_dropped();
    writer.jump(1, 3);
    EXPECT_FALSE(writer.is_open());
    const auto records = drain(reader);
    ASSERT_EQ(records.size(), written + 3) << "begun at word " << already;
    EXPECT_EQ(records[written + 1].type, RingRecord::Type::gap);
    EXPECT_EQ(records[written + 2].type, RingRecord::Type::jump);
    EXPECT_EQ(records[written + 2].value, 1U);
  }
}

TEST_F(OneRing, FailsEveryWriteWhileAllZero) {
  EXPECT_FALSE(write_fast(writer_, event(1, 1, 1)));
  EXPECT_EQ(writer_.write(event(1, 1, 1)), WriteStatus::closed);
  EXPECT_FALSE(writer_.is_busy());
}

TEST_F(OneRing, SendsTheNextEventTheSlowWayWhileHeld) {
  open();
  ASSERT_TRUE(write_fast(writer_, event(1, 1, 1001)));
  writer_.hold();
  EXPECT_FALSE(write_fast(writer_, event(2, 1, 1002)));
  EXPECT_FALSE(writer_.is_busy());
  ASSERT_EQ(writer_.write(event(2, 1, 1002)), WriteStatus::ok);
  EXPECT_TRUE(write_fast(writer_, event(3, 1, 1003)));
  writer_.hold();
  writer_.resume();
  EXPECT_TRUE(write_fast(writer_, event(4, 1, 1004)));
  EXPECT_EQ(drain(reader_).size(), 5U);
}

TEST_F(OneRing, StopsBehindTheEndOfAnOwnerAndGoesOnWithTheNext) {
  open();
  ASSERT_TRUE(write_fast(writer_, event(1, 1, 1001)));
  writer_.end(7, 1002);
  leave_ring(memory_.view(), 0, RingState::released);
  RingRecord buffer[10];
  ReadResult r = reader_.read(buffer, std::size(buffer));
  EXPECT_EQ(r.status, ReadStatus::ended);
  ASSERT_EQ(r.count, 3U);
  EXPECT_EQ(buffer[2].type, RingRecord::Type::thread_end);
  reader_.release();

  memory_.offer(1);
  ASSERT_EQ(claim_ring(memory_.view(), 0, 8), 0U);
  writer_.open(memory_.view().ring(0), false);
  ASSERT_EQ(writer_.start(8, 500), WriteStatus::ok);
  r = reader_.read(buffer, std::size(buffer));
  EXPECT_EQ(r.status, ReadStatus::drained);
  ASSERT_EQ(r.count, 1U);
  EXPECT_EQ(buffer[0].value, 8U);
  EXPECT_EQ(buffer[0].stamp, 500U);  // an owner's stamps say nothing about the next owner's
}

TEST_F(OneRing, GoesToANewOwnerWhenItsThreadIsGoneWithoutAnEnd) {
  open();
  ASSERT_TRUE(write_fast(writer_, event(1, 1, 1001)));
  EXPECT_EQ(drain(reader_).size(), 2U);
  reader_.restart_at_head();
  RingWriter next;
  next.open(memory_.view().ring(0), false);
  ASSERT_EQ(next.start(8, 2000), WriteStatus::ok);
  const auto records = drain(reader_);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].value, 8U);
}

TEST_F(OneRing, ForgetsAWriteThatWasLeftHalfWay) {
  open();
  ASSERT_TRUE(write_fast(writer_, event(1, 1, 1001)));
  writer_.recover();
  EXPECT_FALSE(write_fast(writer_, event(2, 1, 1002)));  // learns where it stands by the slow way
  ASSERT_EQ(writer_.write(event(2, 1, 1002)), WriteStatus::ok);
  const auto records = drain(reader_);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[2].address, 2U);
}

TEST_F(OneRing, IsClaimedOnceAndByItsOwner) {
  EXPECT_EQ(claim_ring(memory_.view(), 2, 11), 2U);
  EXPECT_EQ(claim_ring(memory_.view(), 2, 12), 3U);
  EXPECT_EQ(claim_ring(memory_.view(), 2, 13), 0U);
  EXPECT_EQ(claim_ring(memory_.view(), 2, 14), 1U);
  EXPECT_EQ(claim_ring(memory_.view(), 2, 15), 4U);  // ring_count: none
  EXPECT_EQ(memory_.view().ring(3).header.owner_tid.load(), 12U);
}

// The property: any sequence of events, written while a reader drains at random moments, over as
// many chained rings as it takes, comes out unchanged and in order.
TEST(RingProperty, CarriesAnySequenceOfEventsOverAChainOfRings) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    constexpr std::uint32_t rings = 3;
    RingMemory memory(rings);
    memory.offer(rings);
    std::vector<RingReader> readers;
    for (std::uint32_t i = 0; i < rings; ++i) {
      readers.emplace_back(memory.view().ring(i), rings);
    }
    const bool with_sites = below(2) == 1;
    RingWriter writer;
    std::uint32_t at = claim_ring(memory.view(), 0, 1);
    writer.open(memory.view().ring(at), with_sites);
    ASSERT_EQ(writer.start(1, 0), WriteStatus::ok);

    std::vector<RawEvent> written;
    std::vector<RingRecord> read;
    std::uint32_t reading = at;
    const auto read_some = [&](std::size_t most) {
      std::vector<RingRecord> buffer(1 + below(most));
      const ReadResult r = readers[reading].read(buffer.data(), buffer.size());
      ASSERT_NE(r.status, ReadStatus::damaged);
      readers[reading].release();
      read.insert(read.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(r.count));
      if (r.status == ReadStatus::ended && read.back().type == RingRecord::Type::jump) {
        memory.view().state(reading).store(static_cast<std::uint32_t>(RingState::free));
        reading = static_cast<std::uint32_t>(read.back().value);
      }
    };
    static constexpr Call calls[] = {Call::malloc, Call::calloc, Call::free, Call::operator_new,
                                     Call::malloc_trim};
    std::uint64_t stamp = below(3) == 0 ? random() >> 1 : 0;
    for (int n = 0; n < 30'000; ++n) {
      RawEvent e;
      e.call = calls[below(std::size(calls))];
      if (below(8) == 0) {
        e.call = below(2) == 0 ? Call::realloc : Call::reallocarray;
        e.phase = static_cast<Phase>(1 + below(3));
      }
      stamp += below(50) == 0 ? random() >> (20 + below(40)) : below(1000);
      e.stamp = stamp;
      e.address = random() >> (below(20) == 0 ? 0 : 16 + below(40));
      e.size_bytes = random() >> (below(20) == 0 ? 0 : 32 + below(32));
      e.alignment = below(4) == 0 ? (below(5) == 0 ? random() : std::uint64_t{1} << below(64)) : 0;
      e.site = random();
      WriteStatus s = write_any(writer, e);
      while (s == WriteStatus::full) {
        if (const std::uint32_t next = claim_ring(memory.view(), static_cast<std::uint32_t>(below(rings)), 1);
            next != rings) {
          writer.jump(next, e.stamp);
          leave_ring(memory.view(), at, RingState::chained);
          writer.open(memory.view().ring(next), with_sites);
          ASSERT_EQ(writer.carry_on(at, e.stamp), WriteStatus::ok);
          at = next;
        } else {
          ASSERT_NO_FATAL_FAILURE(read_some(5000));
        }
        s = write_any(writer, e);
      }
      ASSERT_EQ(s, WriteStatus::ok);
      written.push_back(e);
      if (below(200) == 0) {
        ASSERT_NO_FATAL_FAILURE(read_some(300));
      }
    }
    writer.end(1, stamp);
    while (read.back().type != RingRecord::Type::thread_end) {
      ASSERT_NO_FATAL_FAILURE(read_some(5000));
    }
    std::erase_if(read, [](const RingRecord& r) { return r.type != RingRecord::Type::event; });
    ASSERT_EQ(read.size(), written.size());
    for (std::size_t i = 0; i < written.size(); ++i) {
      ASSERT_EQ(read[i], record_of(written[i], with_sites)) << "event " << i;
    }
  }
}

}  // namespace
}  // namespace heaptape::ring
