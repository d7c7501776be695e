// Eight threads that hand over, free and reallocate each other's blocks: the merge against the
// guest's own log, against 20 million events, and against tapes with one free taken out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <unordered_map>

#include "format/writer.h"
#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"
#include "tests/guests/handover_log.h"

namespace heaptape::e2e {
namespace {

namespace fs = std::filesystem;
using format::Event;
using format::EventFlag;
using format::ObjectId;
using format::RecordedEvent;
using format::ThreadIndex;

// Records `handover` with 8 threads; `calls` in all.
Tape record_handover(Recording& recording, std::uint64_t calls, Events events, bool with_log = false) {
  Command command = guest("handover", {"8", std::to_string(calls)});
  if (with_log) {
    command.argv.emplace_back("log");
  }
  command.limit = std::chrono::seconds(500);
  record(command, recording);
  EXPECT_EQ(recording.outcome.status, 0) << recording.outcome.err;
  Tape tape = tape_of(recording.tapes, guest_path("handover"), events);
  expect_sound(tape);
  return tape;
}

// One thread's log, walked in step with that thread's events on the tape.
struct Log {
  std::vector<std::uint64_t> words;
  std::size_t next = 0;
};

std::unordered_map<std::uint64_t, Log> logs_by_tid(const std::string& content) {
  std::unordered_map<std::uint64_t, Log> logs;
  HandoverHeader header{};
  std::memcpy(&header, content.data(), sizeof header);
  for (std::uint64_t t = 0; t < header.threads; ++t) {
    Log& log = logs[header.thread[t].tid];
    log.words.resize(header.thread[t].words);
    std::memcpy(log.words.data(), content.data() + sizeof header + t * header.words_per_thread * 8,
                log.words.size() * 8);
  }
  return logs;
}

// Compares the tape's objects with the log's ids: the relation must be one to one.
class Pairing {
 public:
  explicit Pairing(const std::string& log) : logs_(logs_by_tid(log)) {}

  void check(const Tape& tape) {
    for (const Event& event : tape.events) {
      const auto found = logs_.find(tape.info.threads[static_cast<std::size_t>(event.thread)].tid);
      if (found != logs_.end() && !(format::is_release(event.kind) && event.address == 0)) {
        step(event, found->second);
      }
    }
    for (const auto& [tid, log] : logs_) {
      EXPECT_EQ(log.next, log.words.size()) << "thread " << tid << ": calls that are not on the tape";
      EXPECT_GT(log.words.size(), 0U) << "thread " << tid;
    }
  }
  [[nodiscard]] std::uint64_t paired() const { return paired_; }
  [[nodiscard]] std::uint64_t handed_over() const { return handed_over_; }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  void step(const Event& event, Log& log) {
    if (format::is_acquire(event.kind)) {
      born(event.object, take(log, handover_allocated), event);
    } else if (format::is_realloc(event.kind)) {
      dead(event.released, take(log, handover_realloc_from), event);
      born(event.object, take(log, handover_realloc_to), event);
    } else {
      dead(event.released, take(log, handover_freed), event);
    }
  }
  std::uint64_t take(Log& log, HandoverWhat what) {
    if (log.next == log.words.size() || (log.words[log.next] & 3) != what) {
      ++wrong_;
      return 0;
    }
    return log.words[log.next++] >> 2;
  }
  void born(ObjectId object, std::uint64_t id, const Event& event) {
    wrong_ += id_of_.emplace(object, std::pair(id, event.thread)).second ? 0 : 1;
  }
  void dead(ObjectId object, std::uint64_t id, const Event& event) {
    const auto found = id_of_.find(object);
    if (found == id_of_.end() || found->second.first != id) {
      ++wrong_;
      return;
    }
    ++paired_;
    handed_over_ += found->second.second != event.thread ? 1 : 0;
    id_of_.erase(found);
  }

  std::unordered_map<std::uint64_t, Log> logs_;
  std::unordered_map<ObjectId, std::pair<std::uint64_t, ThreadIndex>> id_of_;
  std::uint64_t paired_ = 0;
  std::uint64_t handed_over_ = 0;
  std::uint64_t wrong_ = 0;
};

TEST(HandOver, IsPairedOnTheTapeAsInTheGuestsOwnLog) {
  Recording recording;
  const Tape tape = record_handover(recording, 2000000 / size_divisor, Events::kept, true);
  Pairing pairing(recording.outcome.files["log"]);
  pairing.check(tape);
  EXPECT_EQ(pairing.wrong(), 0U);
  EXPECT_GT(pairing.paired(), 800000U / size_divisor);  // each second call releases
  EXPECT_GT(pairing.handed_over(), 1000U) << "hardly a block died in another thread than its own";
}

TEST(HandOver, OfTwentyMillionCallsMergesWithoutContradiction) {
  Recording recording;
  const Tape tape = record_handover(recording, 20000000 / size_divisor, Events::summed);
  EXPECT_GE(tape.report.events, 20000000U / size_divisor);
  EXPECT_EQ(tape.report.contradictions, 0U);
  EXPECT_EQ(tape.report.unknown_releases, 0U);
  EXPECT_EQ(tape.report.lost_events, 0U);
  RecordProperty("repairs", std::to_string(tape.report.repairs));
  RecordProperty("stalls", std::to_string(tape.info.footer.recorder.stalls));
}

// The n-th release (not realloc) of a thread's stream.
struct Release {
  ThreadIndex thread{};
  std::uint64_t number = 0;
};

// Releases after which their address was acquired again (or never was).
std::vector<Release> releases(const std::vector<Event>& events, bool reused) {
  std::unordered_map<std::uint64_t, Release> last_release;  // by address, while it is free
  std::unordered_map<ThreadIndex, std::uint64_t> count;
  std::vector<Release> found;
  for (const Event& e : events) {
    const bool acquires = (format::is_acquire(e.kind) || format::is_realloc(e.kind)) && e.address != 0 &&
                          !e.has(EventFlag::failed);
    if (acquires && last_release.contains(e.address)) {
      if (reused) {
        found.push_back(last_release[e.address]);
      }
      last_release.erase(e.address);
    }
    if (format::is_release(e.kind)) {
      const std::uint64_t number = count[e.thread]++;
      if (e.address != 0) {
        last_release[e.address] = {e.thread, number};
      }
    }
  }
  if (!reused) {
    for (const auto& [address, release] : last_release) {
      found.push_back(release);
    }
  }
  return found;
}

using Streams = std::vector<std::vector<RecordedEvent>>;  // by thread

Streams streams_of(const format::TapeReader& reader) {
  Streams streams(reader.info().threads.size());
  const auto visit = [](void* context, ThreadIndex thread, const RecordedEvent* events, std::size_t n) {
    auto& stream = static_cast<Streams*>(context)->at(static_cast<std::size_t>(thread));
    stream.insert(stream.end(), events, events + n);
    return true;
  };
  const auto result = reader.visit_recorded(visit, &streams);
  EXPECT_TRUE(result) << result.error().message();
  return streams;
}

void erase(Streams& streams, const Release& release) {
  auto& stream = streams.at(static_cast<std::size_t>(release.thread));
  std::uint64_t seen = 0;
  const auto is_it = [&](const RecordedEvent& e) {
    return format::is_release(e.kind) && seen++ == release.number;
  };
  const auto found = std::find_if(stream.begin(), stream.end(), is_it);
  ASSERT_NE(found, stream.end());
  stream.erase(found);
}

// Writes the streams as a collector would that makes `passes` of equal length.
void write_tape(const format::TapeInfo& info, const Streams& streams, std::uint64_t passes,
                const fs::path& to) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  for (const auto& stream : streams) {
    for (const RecordedEvent& e : stream) {
      first = std::min(first, e.stamp);
      last = std::max(last, e.stamp);
    }
  }
  auto writer = format::TapeWriter::create(to, info.header);
  ASSERT_TRUE(writer) << writer.error().message();
  for (const format::ThreadInfo& thread : info.threads) {
    ASSERT_TRUE(writer->thread(thread));
  }
  std::vector<std::size_t> written(streams.size());
  std::uint64_t events = 0;
  for (std::uint64_t pass = 1; pass <= passes; ++pass) {
    const std::uint64_t end = pass == passes ? last + 1 : first + (last - first) / passes * pass;
    for (std::size_t t = 0; t < streams.size(); ++t) {
      const std::span<const RecordedEvent> rest = std::span(streams[t]).subspan(written[t]);
      const auto stop =
          std::find_if(rest.begin(), rest.end(), [=](const RecordedEvent& e) { return e.stamp >= end; });
      const auto n = static_cast<std::size_t>(stop - rest.begin());
      ASSERT_TRUE(writer->append(ThreadIndex{static_cast<std::uint32_t>(t)}, rest.first(n)));
      written[t] += n;
      events += n;
    }
    ASSERT_TRUE(writer->watermark({end, static_cast<std::int64_t>(pass) * 1000000}));
  }
  format::TapeFooter footer = info.footer;
  footer.events = events;
  ASSERT_TRUE(writer->finish(footer));
}

// Parameter: how many passes, hence watermarks.
class OneFreeTakenOut : public ::testing::TestWithParam<int> {};

TEST_P(OneFreeTakenOut, IsExactlyOneContradiction) {
  Recording recording;
  const Tape tape = record_handover(recording, 200000, Events::kept);
  const auto reader = format::TapeReader::open(tape.path);
  ASSERT_TRUE(reader);
  const Streams streams = streams_of(*reader);
  const std::vector<Release> reused = releases(tape.events, true);
  const std::vector<Release> last = releases(tape.events, false);
  ASSERT_GT(reused.size(), 10000U);
  ASSERT_FALSE(last.empty());
  const auto passes = static_cast<std::uint64_t>(GetParam());
  const fs::path copy = recording.folder.path() / "copy.tape";

  write_tape(tape.info, streams, passes, copy);
  const Tape whole = read_tape(copy, Events::summed);
  EXPECT_EQ(whole.report.contradictions, 0U);
  EXPECT_EQ(whole.report.events, tape.report.events);

  std::mt19937_64 random(20240607);
  for (int turn = 0; turn < 20; ++turn) {
    const Release& release = reused[random() % reused.size()];
    SCOPED_TRACE(::testing::Message()
                 << "release " << release.number << " of thread " << static_cast<unsigned>(release.thread));
    Streams without_it = streams;
    erase(without_it, release);
    write_tape(tape.info, without_it, passes, copy);
    const Tape without = read_tape(copy, Events::summed);
    EXPECT_EQ(without.report.contradictions, 1U);
    EXPECT_EQ(without.report.unknown_releases, 0U);
    EXPECT_EQ(without.report.events, tape.report.events - 1);
  }
  // A free after which nobody got the address again leaves nothing to notice.
  Streams without_last = streams;
  erase(without_last, last.front());
  write_tape(tape.info, without_last, passes, copy);
  EXPECT_EQ(read_tape(copy, Events::summed).report.contradictions, 0U);
}

INSTANTIATE_TEST_SUITE_P(InPasses, OneFreeTakenOut, ::testing::Values(1, 10, 200));

}  // namespace
}  // namespace heaptape::e2e
