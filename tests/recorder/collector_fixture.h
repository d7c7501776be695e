// For tests of the drain: a segment, a tape in a temporary folder, and a producer as the preload is one.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "format/reader.h"
#include "format/writer.h"
#include "recorder/collector/clock.h"
#include "recorder/collector/drain.h"
#include "recorder/collector/segment.h"
#include "recorder/collector/threads.h"
#include "recorder/ring/writer.h"

namespace heaptape::collector {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heaptape-test-XXXXXX").native();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// A segment that is drained into a tape.
struct DrainedSegment {
  explicit DrainedSegment(std::uint32_t rings = 64, Overflow overflow = Overflow::block)
      : segment(
            Segment::create({.ring_count = rings, .stacks = format::StackMode::caller, .overflow = overflow})
                .value()),
        writer(format::TapeWriter::create(folder / "x.tape", {}).value()),
        drain(segment, threads, writer) {
    for (std::uint32_t i = 0; i <= Segment::first_passes; ++i) {
      segment.keep_reserve();  // as in a process that has lived for some milliseconds
    }
  }

  Drain::Pass pass() {
    segment.keep_reserve();
    const Drain::Pass p = drain.pass(monotonic_ns()).value();
    segment.wake_waiting(p.rings);
    return p;
  }
  // Ends the tape and opens it.
  format::TapeReader read_back() {
    for (const format::ThreadInfo& info : threads.take_unsaved()) {
      EXPECT_TRUE(writer.thread(info));
    }
    EXPECT_TRUE(writer.watermark({~std::uint64_t{0} >> 1, 1}));
    format::TapeFooter footer;
    footer.reason = format::EndReason::exited;
    footer.events = writer.events_written();
    EXPECT_TRUE(writer.finish(footer));
    return format::TapeReader::open(folder / "x.tape").value();
  }

  TemporaryFolder folder;
  Segment segment;
  Threads threads;
  format::TapeWriter writer;
  Drain drain;
};

using Streams = std::map<std::uint32_t, std::vector<format::RecordedEvent>>;

// The events of each thread id, threads of the same id one after the other.
inline Streams streams_of(const format::TapeReader& reader) {
  struct Visit {
    const format::TapeReader* reader;
    Streams streams;
  } visit{&reader, {}};
  const auto add = [](void* context, format::ThreadIndex thread, const format::RecordedEvent* events,
                      std::size_t count) {
    auto& v = *static_cast<Visit*>(context);
    auto& stream = v.streams[v.reader->info().threads.at(static_cast<std::size_t>(thread)).tid];
    stream.insert(stream.end(), events, events + count);
    return true;
  };
  EXPECT_TRUE(reader.visit_recorded(add, &visit));
  return visit.streams;
}

// Events with every escape in them; all follow from the seed.
class RandomEvents {
 public:
  explicit RandomEvents(std::uint64_t seed) : random_(seed), stamp_(random_() >> 20) {}

  ring::RawEvent next() {
    ring::RawEvent e;
    const std::uint64_t r = random_();
    stamp_ += r % 1000 == 0 ? random_() >> 30 : r % 100;
    e.stamp = stamp_;
    e.call = calls[r >> 8 & 7];
    e.phase = !ring::is_realloc(e.call) ? ring::Phase::whole
                                        : ring::Phase{static_cast<std::uint8_t>(1 + (r >> 16) % 3)};
    e.address = (r >> 20 & 0xff) == 0 ? random_() : random_() >> 16;
    e.size_bytes = (r >> 28 & 0xff) == 0 ? random_() : random_() >> 50;
    e.alignment = (r >> 36 & 7) != 0   ? 0
                  : (r >> 40 & 7) == 0 ? random_()
                                       : std::uint64_t{1} << (r >> 44 & 31);
    e.site = random_() >> 16;
    // A tape keeps only what a call of that kind has.
    const bool aligned = e.call == ring::Call::operator_new || e.call == ring::Call::posix_memalign ||
                         e.call == ring::Call::operator_delete_sized;
    e.alignment = aligned ? e.alignment : 0;
    e.size_bytes = e.call == ring::Call::free ? 0 : e.size_bytes;
    e.address = e.call == ring::Call::malloc_trim || e.phase == ring::Phase::failed ? 0 : e.address;
    return e;
  }

 private:
  static constexpr ring::Call calls[8] = {ring::Call::malloc,         ring::Call::free,
                                          ring::Call::operator_new,   ring::Call::operator_delete_sized,
                                          ring::Call::realloc,        ring::Call::reallocarray,
                                          ring::Call::posix_memalign, ring::Call::malloc_trim};
  std::mt19937_64 random_;
  std::uint64_t stamp_;
};

inline format::RecordedEvent as_recorded(const ring::RawEvent& e) {
  return {.stamp = e.stamp,
          .address = e.address,
          .size_bytes = e.size_bytes,
          .alignment = e.alignment,
          .site = format::SiteId{e.site},
          .kind = format::Kind{static_cast<std::uint8_t>(e.call)},
          .phase = format::Phase{static_cast<std::uint8_t>(e.phase)}};
}

// Writes as the preload does: claims, chains where full, waits where nothing is free.
class Producer {
 public:
  Producer(ring::SegmentView view, std::uint32_t tid) : view_(view), tid_(tid) {}

  void write(const ring::RawEvent& e) {
    if (!writer_.is_open()) {
      ring_ = claim();
      writer_.open(view_.ring(ring_), true);
      EXPECT_EQ(writer_.start(tid_, e.stamp), ring::WriteStatus::ok);
    }
    while (writer_.write(e) == ring::WriteStatus::full) {
      const std::uint32_t next = ring::claim_ring(view_, ring_ + 1, tid_);
      if (next == view_.ring_count()) {
        std::this_thread::yield();
        continue;
      }
      writer_.jump(next, e.stamp);
      const std::uint32_t old = ring_;
      ring_ = next;
      writer_.open(view_.ring(next), true);
      EXPECT_EQ(writer_.carry_on(old, e.stamp), ring::WriteStatus::ok);
      ring::leave_ring(view_, old, ring::RingState::chained);
      chained_ += 1;
    }
  }
  void drop() { writer_.note_dropped(); }
  void end(std::uint64_t stamp) {
    if (writer_.is_open()) {
      writer_.end(tid_, stamp);
      ring::leave_ring(view_, ring_, ring::RingState::released);
    }
  }
  [[nodiscard]] std::uint32_t ring() const { return ring_; }
  [[nodiscard]] std::uint64_t chained() const { return chained_; }

 private:
  std::uint32_t claim() {
    for (;;) {
      const std::uint32_t index = ring::claim_ring(view_, 0, tid_);
      if (index != view_.ring_count()) {
        return index;
      }
      std::this_thread::yield();
    }
  }

  ring::SegmentView view_;
  std::uint32_t tid_;
  std::uint32_t ring_ = 0;
  std::uint64_t chained_ = 0;
  ring::RingWriter writer_;
};

}  // namespace heaptape::collector
