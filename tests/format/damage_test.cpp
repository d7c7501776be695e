// Tapes cut anywhere, with any bit flipped, with bytes lost or added; and files that are no tapes.
#include <gmock/gmock.h>

#include <cstring>

#include "format/block.h"
#include "format/pack.h"
#include "tests/format/merge_support.h"
#include "tests/format/simulated_program.h"
#include "tests/format/tape_support.h"

namespace heaptape::format {
namespace {

using testing::HasSubstr;

struct Block {
  std::size_t begin = 0;
  std::size_t end = 0;
  BlockKind kind{};
};

std::vector<Block> blocks_of(const Bytes& tape) {
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < tape.size();) {
    const auto bytes = std::as_bytes(std::span(tape)).subspan(at).first<block_header_bytes>();
    const auto header = decode_block_header(bytes);
    EXPECT_TRUE(header) << "byte " << at;
    if (!header) {
      break;
    }
    blocks.push_back({at, at + block_header_bytes + header->length_bytes, header->kind});
    at = blocks.back().end;
  }
  return blocks;
}

class DamagedTape : public testing::Test {
 protected:
  // Three threads, five blocks of events, everything else once.
  void SetUp() override {
    WriterOptions options;
    options.events_per_block = 8;
    TapeHeader header;
    header.tape_id = {1, 2};
    header.ticks_per_second = 1e9;
    auto writer = TapeWriter::create(path_, header, options);
    const auto steps = SimulatedProgram(1, 3).run(36);
    ASSERT_TRUE(writer->modules(std::vector<ModuleInfo>{{"/a", "", 1, 2, 3}}));
    ASSERT_TRUE(write_steps(*writer, steps, 12));
    ASSERT_TRUE(writer->resident(std::vector<ResidentSample>{{1, 2, 3}}));
    ASSERT_TRUE(writer->gap({ThreadIndex{1}, 1, steps.back().event.stamp}));
    ASSERT_TRUE(writer->marker({1, "m"}));
    ASSERT_TRUE(writer->finish({}));
    bytes_ = read_file(path_);
    blocks_ = blocks_of(bytes_);
    whole_ = *read_streams(*TapeReader::open(path_));
    events_ = TapeReader::open(path_)->info().events;
    std::vector<std::pair<std::uint32_t, std::vector<RecordedEvent>>> runs;
    for (const Block& block : blocks_) {
      per_block_.push_back(block.kind == BlockKind::recorded_events ? events_of(block) : Streams{});
    }
  }

  // The events of one block: of a tape that consists of it and a header.
  Streams events_of(const Block& block) {
    const auto alone = folder_ / "alone.tape";
    write_file(alone, bytes_.substr(0, blocks_[0].end) + bytes_.substr(block.begin, block.end - block.begin));
    return *read_streams(*TapeReader::open(alone));
  }

  // What is left when some blocks are lost.
  Streams without(const std::vector<bool>& lost) const {
    Streams left;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (!lost[b]) {
        for (const auto& [thread, events] : per_block_[b]) {
          left[thread].insert(left[thread].end(), events.begin(), events.end());
        }
      }
    }
    return left;
  }
  static std::uint64_t count(const Streams& streams) {
    std::uint64_t n = 0;
    for (const auto& [thread, events] : streams) {
      n += events.size();
    }
    return n;
  }

  // The merge copes with what is left, whatever it is.
  static void check_merge(const TapeReader& reader) {
    auto cursor = reader.events();
    ASSERT_TRUE(cursor);
    merge_test::Invariants invariants;
    while (true) {
      const auto events = (*cursor)->next();
      ASSERT_TRUE(events) << events.error().message();
      if (events->empty()) {
        return;
      }
      for (const Event& e : *events) {
        invariants.check(e);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.tape";
  Bytes bytes_;
  std::vector<Block> blocks_;
  std::vector<Streams> per_block_;
  Streams whole_;
  std::uint64_t events_ = 0;
};

TEST_F(DamagedTape, CutAnywhereReadsToItsLastWholeBlockAndSaysThatItWasCut) {
  ASSERT_EQ(count(without(std::vector<bool>(blocks_.size()))), events_);
  for (std::size_t size = 1; size < bytes_.size(); ++size) {
    SCOPED_TRACE(testing::Message() << "cut at byte " << size << " of " << bytes_.size());
    write_file(path_, bytes_.substr(0, size));
    for (const Verify verify : {Verify::whole, Verify::index}) {
      const auto reader = TapeReader::open(path_, verify);
      if (size < blocks_[0].end) {
        ASSERT_FALSE(reader);
        ASSERT_EQ(reader.error().code(), ExitCode::bad_tape);
        continue;
      }
      ASSERT_TRUE(reader) << reader.error().message();
      std::vector<bool> lost(blocks_.size());
      bool at_boundary = false;
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        lost[b] = blocks_[b].end > size;
        at_boundary = at_boundary || blocks_[b].end == size;
      }
      const auto streams = read_streams(*reader);
      ASSERT_TRUE(streams);
      ASSERT_EQ(*streams, without(lost));
      const Damage& damage = reader->info().damage;
      ASSERT_TRUE(damage.truncated);
      ASSERT_EQ(reader->info().index_rebuilt, size < blocks_.back().begin);
      ASSERT_EQ(damage.bad_blocks, 0U);
      ASSERT_EQ(damage.missing_blocks, 0U);
      ASSERT_EQ(damage.skipped_bytes == 0, at_boundary);
      ASSERT_EQ(damage.notes.size(), at_boundary ? 0U : 1U);
      check_merge(*reader);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST_F(DamagedTape, WithAnyBitFlippedReadsEveryOtherBlockAndCountsWhatIsMissingExactly) {
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    const std::size_t bit = byte * 5 % 8;
    SCOPED_TRACE(testing::Message() << "bit " << bit << " of byte " << byte << " flipped");
    Bytes damaged = bytes_;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
    write_file(path_, damaged);
    const auto reader = TapeReader::open(path_);
    ASSERT_TRUE(reader) << reader.error().message();
    std::vector<bool> lost(blocks_.size());
    BlockKind hit{};
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      lost[b] = blocks_[b].begin <= byte && byte < blocks_[b].end;
      hit = lost[b] ? blocks_[b].kind : hit;
    }
    const Streams left = without(lost);
    const auto streams = read_streams(*reader);
    ASSERT_TRUE(streams);
    ASSERT_EQ(*streams, left);
    const TapeInfo& info = reader->info();
    ASSERT_EQ(info.damage.bad_blocks, 1U);
    ASSERT_EQ(info.damage.missing_blocks, hit == BlockKind::end ? 0U : 1U);
    ASSERT_EQ(info.damage.missing_events, events_ - count(left));
    ASSERT_EQ(info.damage.truncated, hit == BlockKind::footer || hit == BlockKind::end);
    ASSERT_EQ(info.header.tape_id[1], 2U);
    ASSERT_EQ(info.resident.size(), hit == BlockKind::resident ? 0U : 1U);
    ASSERT_EQ(info.markers.size(), hit == BlockKind::markers ? 0U : 1U);
    ASSERT_EQ(info.gaps.size(), hit == BlockKind::gap ? 0U : 1U);
    ASSERT_EQ(info.modules.size(), hit == BlockKind::modules ? 0U : 1U);
    check_merge(*reader);
    ASSERT_FALSE(HasFatalFailure());

    // By its index alone the tape opens as if it were whole, unless a part was hit that is read; then
    // the cursor that comes to the damage says so.
    const auto indexed = TapeReader::open(path_, Verify::index);
    ASSERT_TRUE(indexed);
    if (hit == BlockKind::recorded_events || hit == BlockKind::watermark) {
      auto cursor = indexed->events();
      auto events = (*cursor)->next();
      while (events && !events->empty()) {
        events = (*cursor)->next();
      }
      ASSERT_FALSE(events);
      ASSERT_THAT(events.error().message(), HasSubstr("heaptape check"));
    } else {
      ASSERT_EQ(indexed->info().index_rebuilt, hit != BlockKind::end);
    }
  }
}

TEST_F(DamagedTape, WithBytesLostOrAddedAnywhereReadsTheBlocksBeforeAndBehind) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 600; ++i) {
    const std::size_t at = 1 + random() % (bytes_.size() - 1);
    const std::size_t size = 1 + random() % 300;
    const bool added = i % 2 == 0;
    SCOPED_TRACE(testing::Message() << size << " bytes " << (added ? "added" : "lost") << " at byte " << at);
    Bytes junk(size, 'x');
    for (char& c : junk) {
      c = static_cast<char>(random());
    }
    const Bytes damaged = bytes_.substr(0, at) + (added ? junk + bytes_.substr(at)
                                                        : bytes_.substr(std::min(at + size, bytes_.size())));
    write_file(path_, damaged);
    const auto reader = TapeReader::open(path_);
    if (!reader) {  // both headers were hit
      ASSERT_FALSE(added);
      ASSERT_LT(at, blocks_[0].end);
      continue;
    }
    std::vector<bool> lost(blocks_.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      lost[b] =
          damaged.find(bytes_.substr(blocks_[b].begin, blocks_[b].end - blocks_[b].begin)) == Bytes::npos;
    }
    const auto streams = read_streams(*reader);
    ASSERT_TRUE(streams);
    ASSERT_EQ(*streams, without(lost));
    ASSERT_TRUE(reader->info().damage.any());
    check_merge(*reader);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_F(DamagedTape, WithAnotherTapeBehindItKeepsThemApart) {
  TapeHeader other;
  other.tape_id = {3, 4};
  const auto second = folder_ / "second.tape";
  auto writer = TapeWriter::create(second, other);
  ASSERT_TRUE(writer->append(ThreadIndex{77}, std::vector<RecordedEvent>(5)));
  ASSERT_TRUE(writer->finish({}));
  write_file(path_, bytes_ + read_file(second));
  const auto reader = TapeReader::open(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->info().header.tape_id[0], 1U);
  EXPECT_EQ(*read_streams(*reader), whole_);
  EXPECT_TRUE(reader->info().damage.any());
}

TEST_F(DamagedTape, FoundCutWhileItIsReadIsAnErrorAndNoSignal) {
  const auto reader = TapeReader::open(path_);
  ASSERT_TRUE(reader);
  std::filesystem::resize_file(path_, blocks_[0].end + 100);
  const auto streams = read_streams(*reader);
  ASSERT_FALSE(streams);
  EXPECT_THAT(streams.error().message(), HasSubstr("changed"));
}

TEST_F(DamagedTape, IsTakenAsItIsWhileItStillGrows) {
  std::filesystem::remove(path_);
  auto writer = TapeWriter::create(path_, {});
  std::uint64_t written = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(writer->append(ThreadIndex{0}, std::vector<RecordedEvent>(10)));
    ASSERT_TRUE(writer->watermark({}));
    written += 10;
    const auto reader = TapeReader::open(path_);
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->info().events, written);
    EXPECT_TRUE(reader->info().damage.truncated);
  }
}

// One error each, that says what and where; nothing hangs.
class NoTape : public testing::Test {
 protected:
  void expect(const std::filesystem::path& path, const std::string& what) {
    for (const Verify verify : {Verify::whole, Verify::index}) {
      const auto reader = TapeReader::open(path, verify);
      ASSERT_FALSE(reader);
      EXPECT_EQ(reader.error().code(), ExitCode::bad_tape);
      EXPECT_THAT(reader.error().message(), HasSubstr(what));
      EXPECT_THAT(reader.error().message(), HasSubstr(path.string()));
      EXPECT_THAT(reader.error().message(), testing::Not(HasSubstr("\n")));
    }
  }
  TemporaryFolder folder_;
};

TEST_F(NoTape, IsWhatDoesNotExist) { expect(folder_ / "nothing", "there is no tape"); }
TEST_F(NoTape, IsADirectory) { expect(folder_ / "", "directory"); }
TEST_F(NoTape, IsAPipeEvenOneThatNobodyWrites) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect(folder_ / "pipe", "pipe");
  expect("/dev/null", "device");
}
TEST_F(NoTape, IsAnEmptyFile) {
  write_file(folder_ / "empty", "");
  expect(folder_ / "empty", "empty");
}
TEST_F(NoTape, IsAnyOtherFile) {
  for (const std::size_t size : {1U, 31U, 32U, 100U, 1000000U}) {
    Bytes junk(size, 0);
    std::mt19937_64 random(size);
    for (char& c : junk) {
      c = static_cast<char>(random());
    }
    write_file(folder_ / "junk", junk);
    expect(folder_ / "junk", "not a tape");
  }
  expect("/proc/self/exe", "not a tape");
}

// A tape of one block.
Bytes one_block(BlockHeader header, std::size_t payload_bytes = 0) {
  const Bytes payload(payload_bytes, 0);
  header.payload_crc = crc32c(std::as_bytes(std::span(payload)));
  const auto head = encode_block_header(header);
  return Bytes(reinterpret_cast<const char*>(head.data()), head.size()) + payload;
}

TEST_F(NoTape, IsATapeOfANewerVersionAndItSaysSo) {
  BlockHeader header{BlockKind::header, 2, 0, 64, 0, 0};
  write_file(folder_ / "newer", one_block(header, 64));
  expect(folder_ / "newer", "newer");
}
TEST_F(NoTape, IsABlockOfALengthThatNoneHas) {
  for (const std::uint32_t length : {0xfffffff8U, 0x80000000U, max_payload_bytes + 8, 65U}) {
    write_file(folder_ / "long", one_block({BlockKind::header, 1, 0, length, 0, 0}, 64));
    expect(folder_ / "long", "not a tape");
  }
}
TEST_F(NoTape, IsABlockWhoseMessageIsGarbage) {
  write_file(folder_ / "garbage", one_block({BlockKind::footer, 1, 0, 64, 0, 0}, 64));
  expect(folder_ / "garbage", "header block");
}

TEST_F(NoTape, IsATapeWithEssentialBlocksOfAnUnknownKindButOthersAreSkipped) {
  const auto path = folder_ / "future.tape";
  auto writer = TapeWriter::create(path, {});
  ASSERT_TRUE(writer->append(ThreadIndex{0}, std::vector<RecordedEvent>(3)));
  ASSERT_TRUE(writer->watermark({}));
  writer = Failure(Error(ExitCode::no, "destroyed"));
  const Bytes tape = read_file(path);
  const std::uint64_t sequence = blocks_of(tape).size();
  write_file(path, tape + one_block({BlockKind{99}, 1, 0, 64, sequence, 0}, 64) +
                       one_block({BlockKind{99}, 1, 0, 64, sequence + 1, 0}, 64));
  const auto reader = TapeReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ(reader->info().events, 3U);
  EXPECT_EQ(reader->info().damage.bad_blocks, 0U);
  EXPECT_EQ(reader->info().damage.missing_blocks, 0U);

  write_file(path, tape + one_block({BlockKind{99}, 1, BlockHeader::essential, 64, sequence, 0}, 64));
  expect(path, "kind 99");
}

}  // namespace
}  // namespace heaptape::format
