// Recorded tapes, written and read back.
#include <gmock/gmock.h>

#include "tests/format/tape_support.h"

namespace heaptape::format {
namespace {

using testing::HasSubstr;

TapeHeader some_header() {
  TapeHeader header;
  header.tape_id = {7, 1ULL << 63};
  header.heaptape_version = "1.2.3";
  header.program = "/usr/bin/pro\xffgram";  // not UTF-8
  header.arguments = {"program", "", "--x=\n"};
  header.pid = 4000000000;
  header.parent_pid = 1;
  header.host_kernel = "Linux";
  header.cpu_model = "some";
  header.cpus = 128;
  header.page_size_bytes = 65536;
  header.started_unix_ns = 1ULL << 63;
  header.clock = ClockSource::sequence;
  header.start_tick = 12345678901234567890ULL;
  header.ticks_per_second = 2.4e9;
  header.stacks = StackMode::caller;
  header.allocator = "/lib/liballocator.so";
  header.from_start = false;
  header.keeps_addresses = true;
  header.source = "recorded";
  return header;
}

class RecordedTape : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.tape";
};

TEST_F(RecordedTape, GivesBackEveryEventOfEveryThreadWhateverTheBlocksAndFlushes) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    WriterOptions options;
    options.events_per_block = 1 + static_cast<std::uint32_t>(random() % 300);
    options.zstd_level = static_cast<int>(random() % 3);
    auto writer = TapeWriter::create(path_, {}, options);
    ASSERT_TRUE(writer);
    const std::uint32_t threads = 1 + static_cast<std::uint32_t>(random() % 20);
    std::vector<RandomEvents> sources;
    for (std::uint32_t t = 0; t < threads; ++t) {
      sources.emplace_back(seed * 1000 + t, seed % 2 == 0);
    }
    Streams written;
    std::uint64_t count = 0;
    for (int i = 0; i < 60; ++i) {
      const auto t = static_cast<std::uint32_t>(random() % threads);
      const auto events = sources[t].take(random() % (random() % 10 == 0 ? 1000 : 40));
      ASSERT_TRUE(writer->append(ThreadIndex{t}, events));
      if (!events.empty()) {
        written[t].insert(written[t].end(), events.begin(), events.end());
      }
      count += events.size();
      if (random() % 7 == 0) {
        ASSERT_TRUE(writer->watermark({static_cast<std::uint64_t>(i), i}));
      }
      if (random() % 20 == 0) {
        ASSERT_TRUE(writer->gap({ThreadIndex{t}, 1, 2}));
      }
    }
    ASSERT_TRUE(writer->finish({}));
    EXPECT_EQ(writer->events_written(), count);

    for (const Verify verify : {Verify::whole, Verify::index}) {
      const auto reader = TapeReader::open(path_, verify);
      ASSERT_TRUE(reader) << reader.error().message();
      EXPECT_FALSE(reader->info().damage.any());
      EXPECT_FALSE(reader->info().index_rebuilt);
      EXPECT_EQ(reader->info().events, count);
      EXPECT_EQ(reader->info().footer.events, count);
      EXPECT_EQ(reader->info().file_bytes, writer->bytes_written());
      const auto read = read_streams(*reader);
      ASSERT_TRUE(read) << read.error().message();
      ASSERT_EQ(*read, written);
    }
  }
}

TEST_F(RecordedTape, KeepsEverythingThatIsNoEvent) {
  const TapeHeader header = some_header();
  const RecorderStats stats{1, 2, 3, 4, 5, 6, 7};
  {
    auto writer = TapeWriter::create(path_, header);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->thread({ThreadIndex{3}, 333, 5, 0, "old name"}));
    ASSERT_TRUE(writer->thread({ThreadIndex{1}, 111, 1, 2, "first"}));
    ASSERT_TRUE(writer->thread({ThreadIndex{3}, 333, 5, 6, "new name"}));
    ASSERT_TRUE(writer->append(ThreadIndex{2}, std::vector{RecordedEvent{}}));
    const std::vector<ModuleInfo> modules = {{"/b", "beef", 0x2000, 10, 0x1000}, {"/a", "", 0x1000, 20, 0}};
    ASSERT_TRUE(writer->modules(modules));
    ASSERT_TRUE(writer->modules(std::vector<ModuleInfo>{{"/c", "cafe", 0x2000, 30, 0}}));
    ASSERT_TRUE(writer->resident(std::vector<ResidentSample>{{-1, 2, 3}, {4, 1ULL << 63, 6}}));
    ASSERT_TRUE(writer->gap({ThreadIndex{2}, 99, 100}));
    ASSERT_TRUE(writer->marker({17, "here"}));
    ASSERT_TRUE(writer->watermark({20, 21}));
    TapeFooter footer;
    footer.reason = EndReason::killed;
    footer.value = 9;
    footer.duration_ns = 1LL << 62;
    footer.recorder = stats;
    const MergeReport merged{1, 2, 3, 4, 5, 6, 7, 8, 9};
    ASSERT_TRUE(writer->finish(footer, &merged));
  }
  for (const Verify verify : {Verify::whole, Verify::index}) {
    const auto reader = TapeReader::open(path_, verify);
    ASSERT_TRUE(reader) << reader.error().message();
    const TapeInfo& info = reader->info();
    EXPECT_EQ(info.header.form, header.form);
    EXPECT_EQ(info.header.tape_id, header.tape_id);
    EXPECT_EQ(info.header.heaptape_version, header.heaptape_version);
    EXPECT_EQ(info.header.program, header.program);
    EXPECT_EQ(info.header.arguments, header.arguments);
    EXPECT_EQ(info.header.pid, header.pid);
    EXPECT_EQ(info.header.parent_pid, header.parent_pid);
    EXPECT_EQ(info.header.host_kernel, header.host_kernel);
    EXPECT_EQ(info.header.cpu_model, header.cpu_model);
    EXPECT_EQ(info.header.cpus, header.cpus);
    EXPECT_EQ(info.header.page_size_bytes, header.page_size_bytes);
    EXPECT_EQ(info.header.started_unix_ns, header.started_unix_ns);
    EXPECT_EQ(info.header.clock, header.clock);
    EXPECT_EQ(info.header.start_tick, header.start_tick);
    EXPECT_EQ(info.header.ticks_per_second, header.ticks_per_second);
    EXPECT_EQ(info.header.stacks, header.stacks);
    EXPECT_EQ(info.header.allocator, header.allocator);
    EXPECT_EQ(info.header.from_start, header.from_start);
    EXPECT_EQ(info.header.keeps_addresses, header.keeps_addresses);
    EXPECT_EQ(info.header.source, header.source);

    ASSERT_EQ(info.threads.size(), 3U);
    EXPECT_EQ(info.threads[0].name, "first");
    EXPECT_EQ(info.threads[0].end_tick, 2U);
    EXPECT_EQ(info.threads[1].thread, ThreadIndex{2}) << "known by its events alone";
    EXPECT_EQ(info.threads[2].name, "new name");
    EXPECT_EQ(info.threads[2].tid, 333U);
    ASSERT_EQ(info.modules.size(), 2U);
    EXPECT_EQ(info.modules[0].path, "/a");
    EXPECT_EQ(info.modules[1].path, "/c");
    EXPECT_EQ(info.modules[1].build_id, "cafe");
    ASSERT_EQ(info.resident.size(), 2U);
    EXPECT_EQ(info.resident[0].time_ns, -1);
    EXPECT_EQ(info.resident[1].resident_bytes, 1ULL << 63);
    ASSERT_EQ(info.gaps.size(), 1U);
    EXPECT_EQ(info.gaps[0].lost_events, 99U);
    ASSERT_EQ(info.markers.size(), 1U);
    EXPECT_EQ(info.markers[0].name, "here");
    EXPECT_EQ(info.footer.reason, EndReason::killed);
    EXPECT_EQ(info.footer.value, 9);
    EXPECT_EQ(info.footer.duration_ns, 1LL << 62);
    EXPECT_EQ(info.footer.recorder.stalled_ns, stats.stalled_ns);
    EXPECT_EQ(info.footer.recorder.lost_threads, stats.lost_threads);
    EXPECT_EQ(info.events, 1U);
  }
}

TEST_F(RecordedTape, WithoutThreadsOrEventsIsATapeToo) {
  ASSERT_TRUE(TapeWriter::create(path_, {})->finish({}));
  const auto reader = TapeReader::open(path_);
  ASSERT_TRUE(reader);
  EXPECT_FALSE(reader->info().damage.any());
  EXPECT_EQ(reader->info().events, 0U);
  EXPECT_TRUE(reader->info().threads.empty());
  EXPECT_TRUE(read_streams(*reader)->empty());
}

TEST_F(RecordedTape, AThousandThreadsWithOneEventPerWatermarkCostTwentyBytesAnEventAtMost) {
  auto writer = TapeWriter::create(path_, {});
  ASSERT_TRUE(writer);
  Streams written;
  std::uint64_t tick = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::uint32_t t = 0; t < 1000; ++t) {
      RecordedEvent e;
      e.stamp = tick += 1000 + t % 13;
      e.address = 0x7f00'0000'0000 + t * 0x10000 + round * 64;
      e.size_bytes = 16 + t % 50;
      ASSERT_TRUE(writer->append(ThreadIndex{t}, {&e, 1}));
      written[t].push_back(e);
    }
    ASSERT_TRUE(writer->watermark({tick, static_cast<std::int64_t>(tick)}));
  }
  ASSERT_TRUE(writer->finish({}));
  EXPECT_LT(writer->bytes_written(), 20'000U * 48);
  const auto reader = TapeReader::open(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(*read_streams(*reader), written);
  EXPECT_EQ(reader->info().threads.size(), 1000U);
  // Twenty watermarks, twenty blocks of events, the threads, two headers, footer and end.
  EXPECT_EQ(reader->info().blocks, 45U);
}

TEST_F(RecordedTape, AThousandThreadsWithoutAWatermarkAreHeldBackInBoundedMemory) {
  WriterOptions options;
  options.events_per_block = 64;
  auto writer = TapeWriter::create(path_, {}, options);
  ASSERT_TRUE(writer);
  std::uint64_t appended = 0;
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t t = 0; t < 1000; ++t) {
      ASSERT_TRUE(writer->append(ThreadIndex{t}, std::vector<RecordedEvent>(1)));
      ++appended;
      ASSERT_LE(appended - writer->events_written(), 16U * 64);
    }
  }
  ASSERT_TRUE(writer->finish({}));
  EXPECT_EQ(TapeReader::open(path_)->info().events, appended);
}

TEST_F(RecordedTape, OfAWriterThatWasDestroyedSaysThatItWasCutAndHasItsEvents) {
  {
    auto writer = TapeWriter::create(path_, {});
    ASSERT_TRUE(writer->append(ThreadIndex{0}, std::vector<RecordedEvent>(10)));
  }
  const auto reader = TapeReader::open(path_);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->info().damage.truncated);
  EXPECT_TRUE(reader->info().index_rebuilt);
  EXPECT_EQ(reader->info().footer.reason, EndReason::unknown);
  EXPECT_EQ(reader->info().events, 10U);
}

TEST_F(RecordedTape, AVisitorThatHasSeenEnoughIsNotCalledAgain) {
  auto writer = TapeWriter::create(path_, {});
  ASSERT_TRUE(writer->append(ThreadIndex{0}, std::vector<RecordedEvent>(1)));
  ASSERT_TRUE(writer->append(ThreadIndex{1}, std::vector<RecordedEvent>(1)));
  ASSERT_TRUE(writer->finish({}));
  const auto reader = TapeReader::open(path_);
  int calls = 0;
  const auto once = [](void* context, ThreadIndex, const RecordedEvent*, std::size_t) {
    ++*static_cast<int*>(context);
    return false;
  };
  ASSERT_TRUE(reader->visit_recorded(once, &calls));
  EXPECT_EQ(calls, 1);
}

TEST_F(RecordedTape, KindsOfLaterVersionsKeepAllTheirProperties) {
  auto writer = TapeWriter::create(path_, {});
  const RecordedEvent later{1, 2, 3, 4, SiteId{5}, Kind{60}, Phase::whole};
  ASSERT_TRUE(writer->append(ThreadIndex{0}, {&later, 1}));
  ASSERT_TRUE(writer->finish({}));
  EXPECT_EQ(read_streams(*TapeReader::open(path_))->at(0).at(0), later);
}

TEST_F(RecordedTape, AKindThatDoesNotFitIsRefusedAndTheWriterStaysFailed) {
  auto writer = TapeWriter::create(path_, {});
  RecordedEvent e;
  e.kind = Kind{64};
  ASSERT_TRUE(writer->append(ThreadIndex{0}, {&e, 1}));  // held back
  const auto marked = writer->watermark({});
  ASSERT_FALSE(marked);
  EXPECT_THAT(marked.error().message(), HasSubstr("kind 64"));
  e.kind = Kind::malloc;
  EXPECT_FALSE(writer->append(ThreadIndex{0}, {&e, 1}));
  EXPECT_FALSE(writer->finish({}));
}

TEST_F(RecordedTape, IsRefusedToASecondWriterWhileTheFirstOneHasIt) {
  auto first = TapeWriter::create(path_, {});
  ASSERT_TRUE(first);
  const auto second = TapeWriter::create(path_, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another process"));
  ASSERT_TRUE(first->finish({}));
  EXPECT_TRUE(TapeWriter::create(path_, {}));
}

TEST_F(RecordedTape, CannotBeWrittenToAFolderAPipeOrAFullDevice) {
  EXPECT_EQ(TapeWriter::create(folder_ / "", {}).error().code(), ExitCode::system);
  EXPECT_EQ(TapeWriter::create(folder_ / "no/such/folder", {}).error().code(), ExitCode::system);
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(TapeWriter::create(pipe, {}));
  EXPECT_FALSE(TapeWriter::create("/dev/full", {}));
}

}  // namespace
}  // namespace heaptape::format
