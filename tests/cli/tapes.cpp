#include "tests/cli/tapes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/format/tape_support.h"

namespace heaptape::cli::testing {

using format::Kind;
using format::RecordedEvent;
using format::ThreadIndex;

void write_tape(const std::filesystem::path& path, std::uint64_t blocks, bool forget_first_free) {
  constexpr std::uint64_t first_address = 0x10000;
  constexpr std::uint64_t step = 0x100;
  format::TapeHeader header;
  header.tape_id = {1, 2};
  header.program = "/usr/bin/sample";
  header.arguments = {"sample", "--once"};
  header.allocator = "/lib/x86_64-linux-gnu/libc.so.6";
  header.ticks_per_second = 1e9;
  header.source = "recorded";
  auto writer = format::TapeWriter::create(path, header);
  ASSERT_TRUE(writer) << writer.error().message();
  std::vector<RecordedEvent> made;
  std::vector<RecordedEvent> freed;
  std::uint64_t stamp = 0;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    made.push_back({.stamp = stamp += 1000, .address = first_address + block * step, .size_bytes = 100});
  }
  for (std::uint64_t block = forget_first_free ? 1 : 0; block + 1 < blocks; ++block) {
    freed.push_back({.stamp = stamp += 1000, .address = first_address + block * step, .kind = Kind::free});
  }
  freed.push_back({.stamp = stamp += 1000, .kind = Kind::free});
  if (forget_first_free) {
    made.push_back({.stamp = stamp += 1000, .address = first_address, .size_bytes = 100});
  }
  ASSERT_TRUE(writer->append(ThreadIndex{0}, made));
  ASSERT_TRUE(writer->append(ThreadIndex{1}, freed));
  ASSERT_TRUE(writer->thread({.thread = ThreadIndex{0}, .tid = 100, .start_tick = 1, .name = "maker"}));
  ASSERT_TRUE(writer->thread({.thread = ThreadIndex{1}, .tid = 101, .start_tick = 1, .name = "breaker"}));
  const format::ResidentSample samples[] = {
      {.time_ns = 0, .resident_bytes = 1 << 20, .anonymous_bytes = 1 << 18},
      {.time_ns = static_cast<std::int64_t>(stamp), .resident_bytes = 2 << 20, .anonymous_bytes = 1 << 19}};
  ASSERT_TRUE(writer->resident(samples));
  ASSERT_TRUE(writer->watermark({.tick = stamp + 1, .time_ns = static_cast<std::int64_t>(stamp) + 1}));
  ASSERT_TRUE(writer->finish({.reason = format::EndReason::exited,
                              .duration_ns = static_cast<std::int64_t>(stamp) + 1,
                              .events = made.size() + freed.size(),
                              .recorder = {}}));
}

void cut_tape(const std::filesystem::path& whole, const std::filesystem::path& cut) {
  const format::Bytes bytes = format::read_file(whole);
  format::write_file(cut, bytes.substr(0, bytes.size() / 2));
}

}  // namespace heaptape::cli::testing
