// Packed tapes: what a recorded tape tells, told again; and what survives damage.
#include <gmock/gmock.h>

#include "format/pack.h"
#include "tests/format/merge_support.h"
#include "tests/format/simulated_program.h"
#include "tests/format/tape_support.h"

namespace heaptape::format {
namespace {

using testing::HasSubstr;

struct Merged {
  std::vector<Event> events;
  MergeReport report;
  std::uint32_t slots = 0;
};

Result<Merged> read_events(const TapeReader& reader) {
  auto cursor = reader.events();
  if (!cursor) {
    return Failure(cursor.error());
  }
  Merged merged;
  while (true) {
    const auto events = (*cursor)->next();
    if (!events) {
      return Failure(events.error());
    }
    if (events->empty()) {
      break;
    }
    merged.events.insert(merged.events.end(), events->begin(), events->end());
  }
  merged.report = (*cursor)->report();
  merged.slots = (*cursor)->slots();
  EXPECT_EQ((*cursor)->progress(), 1.0);
  EXPECT_TRUE((*cursor)->next()->empty()) << "the end stays the end";
  return merged;
}

class PackedTape : public testing::Test {
 protected:
  // A recorded tape of a simulated program.
  void record(std::uint64_t seed, std::uint32_t threads, std::size_t events,
              const WriterOptions& options = {}, bool finish = true) {
    const auto steps = SimulatedProgram(seed, threads).run(events);
    auto writer = TapeWriter::create(recorded_, simulated_header(), options);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(write_steps(*writer, steps, 1 + seed % 700));
    if (finish) {
      TapeFooter footer;
      footer.reason = EndReason::exited;
      ASSERT_TRUE(writer->finish(footer));
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path recorded_ = folder_ / "recorded.tape";
  std::filesystem::path packed_ = folder_ / "packed.tape";
};

TEST_F(PackedTape, TellsEveryEventAsTheRecordedTapeDoesButForTimesBelowAMicrosecond) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    WriterOptions small;
    small.events_per_block = 1 + static_cast<std::uint32_t>(seed * 37 % 500);
    record(seed, 1 + static_cast<std::uint32_t>(seed % 9), 6000, small);
    const auto source = TapeReader::open(recorded_);
    ASSERT_TRUE(source);
    auto expected = read_events(*source);
    ASSERT_TRUE(expected) << expected.error().message();
    EXPECT_EQ(expected->report.contradictions, 0U);
    EXPECT_GT(expected->report.unknown_releases, 0U);

    for (const bool keep_addresses : {true, false}) {
      PackOptions options;
      options.keep_addresses = keep_addresses;
      options.writer.events_per_block = 1 + static_cast<std::uint32_t>(seed * 91 % 900);
      options.writer.zstd_level = static_cast<int>(seed % 4);
      const auto summary = pack_tape(*source, packed_, options);
      ASSERT_TRUE(summary) << summary.error().message();
      EXPECT_EQ(summary->events, expected->events.size());
      EXPECT_EQ(summary->packed_bytes, std::filesystem::file_size(packed_));

      const auto reader = TapeReader::open(packed_);
      ASSERT_TRUE(reader);
      EXPECT_EQ(reader->info().header.form, TapeForm::packed);
      EXPECT_EQ(reader->info().header.keeps_addresses, keep_addresses);
      EXPECT_FALSE(reader->info().damage.any());
      EXPECT_EQ(reader->info().events, expected->events.size());
      const auto read = read_events(*reader);
      ASSERT_TRUE(read) << read.error().message();
      ASSERT_EQ(read->events.size(), expected->events.size());
      for (std::size_t i = 0; i < read->events.size(); ++i) {
        Event wanted = expected->events[i];
        wanted.time_ns -= wanted.time_ns % 1000;
        if (!keep_addresses) {
          wanted.address = wanted.released_address = 0;
        }
        ASSERT_EQ(read->events[i], wanted) << "event " << i;
      }
      EXPECT_EQ(read->report, expected->report);
      EXPECT_EQ(read->slots, expected->slots);
    }
  }
}

TEST_F(PackedTape, PackedAgainIsTheSameWithoutItsAddresses) {
  record(5, 3, 3000);
  PackOptions options;
  options.keep_addresses = true;
  ASSERT_TRUE(pack_tape(*TapeReader::open(recorded_), packed_, options));
  const auto again = folder_ / "again.tape";
  const auto directly = folder_ / "directly.tape";
  ASSERT_TRUE(pack_tape(*TapeReader::open(packed_), again));
  ASSERT_TRUE(pack_tape(*TapeReader::open(recorded_), directly));
  EXPECT_EQ(read_events(*TapeReader::open(again))->events, read_events(*TapeReader::open(directly))->events);
  EXPECT_EQ(read_events(*TapeReader::open(again))->report, read_events(*TapeReader::open(directly))->report);
}

TEST_F(PackedTape, KeepsThreadsModulesSamplesGapsMarkersAndFooter) {
  {
    auto writer = TapeWriter::create(recorded_, simulated_header());
    ASSERT_TRUE(writer->append(ThreadIndex{4}, std::vector<RecordedEvent>(3)));
    ASSERT_TRUE(writer->thread({ThreadIndex{4}, 44, 1, 2, "worker"}));
    ASSERT_TRUE(writer->modules(std::vector<ModuleInfo>{{"/a", "beef", 1, 2, 3}}));
    ASSERT_TRUE(writer->resident(std::vector<ResidentSample>{{1, 2, 3}}));
    ASSERT_TRUE(writer->gap({ThreadIndex{4}, 7, 0}));
    ASSERT_TRUE(writer->marker({9, "here"}));
    TapeFooter footer;
    footer.reason = EndReason::killed;
    footer.value = 9;
    footer.recorder.stalls = 11;
    ASSERT_TRUE(writer->finish(footer));
  }
  ASSERT_TRUE(pack_tape(*TapeReader::open(recorded_), packed_));
  const auto reader = TapeReader::open(packed_);
  const TapeInfo& info = reader->info();
  EXPECT_EQ(info.header.program, "/usr/bin/simulated");
  EXPECT_EQ(info.header.source, "packed");
  ASSERT_EQ(info.threads.size(), 1U);
  EXPECT_EQ(info.threads[0].name, "worker");
  ASSERT_EQ(info.modules.size(), 1U);
  EXPECT_EQ(info.modules[0].load_bias, 3U);
  ASSERT_EQ(info.resident.size(), 1U);
  EXPECT_EQ(info.resident[0].anonymous_bytes, 3U);
  ASSERT_EQ(info.gaps.size(), 1U);
  EXPECT_EQ(info.gaps[0].lost_events, 7U);
  ASSERT_EQ(info.markers.size(), 1U);
  EXPECT_EQ(info.markers[0].name, "here");
  EXPECT_EQ(info.footer.reason, EndReason::killed);
  EXPECT_EQ(info.footer.recorder.stalls, 11U);
  const auto read = read_events(*reader);
  EXPECT_EQ(read->report.gaps, 1U);
  EXPECT_EQ(read->report.lost_events, 7U);
}

TEST_F(PackedTape, OfACutTapeStillSaysThatItWasCut) {
  record(3, 4, 3000, {}, false);
  const auto source = TapeReader::open(recorded_);
  ASSERT_TRUE(source->info().damage.truncated);
  const auto expected = read_events(*source);
  ASSERT_TRUE(pack_tape(*source, packed_));
  const auto reader = TapeReader::open(packed_);
  EXPECT_TRUE(reader->info().damage.truncated);
  EXPECT_THAT(reader->info().damage.notes, testing::Contains(HasSubstr("packed from")));
  EXPECT_EQ(read_events(*reader)->report, expected->report);
}

TEST_F(PackedTape, WithALostBlockIsReadOnWithoutInventingPairs) {
  record(8, 4, 6000);
  PackOptions options;
  options.writer.events_per_block = 500;
  options.keep_addresses = true;
  ASSERT_TRUE(pack_tape(*TapeReader::open(recorded_), packed_, options));
  const auto whole = read_events(*TapeReader::open(packed_));
  const Bytes bytes = read_file(packed_);

  std::size_t offset = 0;
  const std::size_t blocks = (whole->events.size() + 499) / 500;
  ASSERT_GT(blocks, 5U);
  for (std::size_t block = 0; block < blocks; ++block) {
    Bytes damaged = bytes;
    offset = damaged.find(std::string("\x89HTAP\r\n\x1a\x03", 9), offset + 1);  // the next one of events
    ASSERT_NE(offset, Bytes::npos);
    damaged[offset + 200] ^= 1;
    write_file(packed_, damaged);
    const auto reader = TapeReader::open(packed_);
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->info().damage.missing_blocks, 1U);
    EXPECT_EQ(reader->info().damage.missing_events,
              std::min<std::size_t>(500, whole->events.size() - block * 500))
        << "block " << block;
    const auto read = read_events(*reader);
    ASSERT_TRUE(read) << read.error().message();
    merge_test::Invariants invariants;
    invariants.check(read->events);
    ASSERT_FALSE(HasFatalFailure()) << "block " << block;
    // What is left is as it was: same calls, and where a pair is told it is the true one.
    const std::size_t hole = block * 500;
    std::map<ObjectId, ObjectId> object_was;
    for (std::size_t i = 0; i < read->events.size(); ++i) {
      const Event& now = read->events[i];
      const Event& was = whole->events[i < hole ? i : i + (whole->events.size() - read->events.size())];
      ASSERT_EQ(now.kind, was.kind);
      ASSERT_EQ(now.thread, was.thread);
      ASSERT_EQ(now.time_ns, was.time_ns);
      ASSERT_EQ(now.size_bytes, was.size_bytes);
      ASSERT_EQ(now.object == ObjectId::none, was.object == ObjectId::none);
      object_was[now.object] = was.object;
      if (now.released != ObjectId::none) {
        ASSERT_EQ(object_was[now.released], was.released) << "block " << block << ", event " << i;
        ASSERT_EQ(now.released_address, was.released_address);
      }
    }
    EXPECT_GE(read->report.lost_events, reader->info().damage.missing_events);
    EXPECT_EQ(read->report.contradictions, 0U);
  }
}

TEST_F(PackedTape, HasNoStreamsOfThreads) {
  record(1, 1, 10);
  ASSERT_TRUE(pack_tape(*TapeReader::open(recorded_), packed_));
  const auto streams = read_streams(*TapeReader::open(packed_));
  ASSERT_FALSE(streams);
  EXPECT_EQ(streams.error().code(), ExitCode::usage);
}

TEST_F(PackedTape, TakesNoEventsOutOfOrderAndNoStreams) {
  TapeHeader header;
  header.form = TapeForm::packed;
  const auto refused = [&](Event event) {
    auto writer = TapeWriter::create(packed_, header);
    const bool appended = writer->append({&event, 1}).has_value();
    return !appended || !writer->finish({});
  };
  Event first;
  first.object = ObjectId{1};
  first.slot = SlotIndex{0};
  EXPECT_FALSE(refused(first));
  Event e = first;
  e.index = 1;
  EXPECT_TRUE(refused(e)) << "an index left out";
  e = first;
  e.object = ObjectId{2};
  EXPECT_TRUE(refused(e)) << "an object left out";
  e = first;
  e.object = ObjectId::none;
  EXPECT_TRUE(refused(e)) << "a malloc without an object";
  e = first;
  e.kind = Kind::free;
  e.object = ObjectId::none;
  e.released = ObjectId{1};
  EXPECT_TRUE(refused(e)) << "a free of what was not born";
  auto writer = TapeWriter::create(packed_, header);
  EXPECT_FALSE(writer->append(ThreadIndex{0}, std::vector<RecordedEvent>(1)));
}

TEST_F(PackedTape, LeavesWhatHadItsNameAloneWhereThePackingFails) {
  record(1, 1, 10);
  write_file(packed_, "mine");
  TapeHeader header = simulated_header();
  PackOptions options;
  options.writer.events_per_block = 0;  // refused
  EXPECT_FALSE(pack_tape(*TapeReader::open(recorded_), packed_, options));
  EXPECT_EQ(read_file(packed_), "mine");
  const auto list = std::filesystem::directory_iterator(packed_.parent_path());
  EXPECT_EQ(std::distance(begin(list), end(list)), 2) << "nothing else is left behind";
}

}  // namespace
}  // namespace heaptape::format
