// Makes the golden tapes of the current format version, with their texts: golden_make FOLDER.
//
// For use once, when a version of the format is new. Golden tapes of a version are never edited or
// made again: they are what that version's tapes look like for ever.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "format/pack.h"
#include "tests/format/simulated_program.h"
#include "tests/format/tape_support.h"
#include "tests/format/tape_text.h"

namespace heaptape::format {
namespace {

void check(const Result<void>& result) {
  if (!result) {
    throw std::runtime_error(result.error().message());
  }
}

TapeHeader golden_header() {
  TapeHeader header = simulated_header();
  header.tape_id = {0x0123456789abcdef, 0xfedcba9876543210};
  header.heaptape_version = "0.1.0";
  header.arguments = {"simulated", "two words", "100%", "\xff"};
  header.pid = 4711;
  header.parent_pid = 1;
  header.host_kernel = "Linux 6.1.0 x86_64";
  header.cpu_model = "a processor";
  header.cpus = 2;
  header.started_unix_ns = 1'700'000'000'000'000'000;
  header.start_tick = 1000;
  header.allocator = "/lib/x86_64-linux-gnu/libc.so.6";
  return header;
}

// Three threads, every block kind, sizes and addresses of all magnitudes.
void make_recorded(const std::filesystem::path& path, int zstd_level) {
  WriterOptions options;
  options.events_per_block = 100;
  options.zstd_level = zstd_level;
  auto writer = TapeWriter::create(path, golden_header(), options).value();
  check(writer.thread({ThreadIndex{0}, 4711, 1000, 0, "main"}));
  check(writer.thread({ThreadIndex{1}, 4712, 1200, 300000, "worker 1"}));
  const ModuleInfo module{"/usr/bin/simulated", "0badc0de", 0x550000000000, 1 << 20, 0x550000000000};
  check(writer.modules({&module, 1}));
  const auto steps = SimulatedProgram(2024, 3).run(400);
  check(write_steps(writer, steps, 130));
  const ResidentSample samples[] = {{1'000'000, 12 << 20, 8 << 20}, {2'000'000, 13 << 20, 9 << 20}};
  check(writer.resident(samples));
  check(writer.marker({1'500'000, "half way"}));
  check(writer.gap({ThreadIndex{2}, 12, steps.back().event.stamp + 1}));
  RecordedEvent large;
  large.stamp = steps.back().event.stamp + 1'000'000'000'000;
  large.address = 0xfffffffffffffff0;
  large.size_bytes = 0xffffffffffffffff;
  check(writer.append(ThreadIndex{2}, {&large, 1}));
  check(writer.watermark({large.stamp + 1, 600'000}));
  TapeFooter footer;
  footer.reason = EndReason::killed;
  footer.value = 9;
  footer.duration_ns = 700'000;
  footer.recorder = {1, 2, 12, 0, 4, 5, 6};
  check(writer.finish(footer));
}

void make_all(const std::filesystem::path& folder) {
  const auto tape = [&](const char* name) { return folder / fmt::format("v1_{}.tape", name); };
  make_recorded(tape("recorded"), 1);
  make_recorded(tape("recorded_plain"), 0);
  const auto recorded = TapeReader::open(tape("recorded")).value();
  PackOptions options;
  options.writer.events_per_block = 100;
  pack_tape(recorded, tape("packed"), options).value();
  options.keep_addresses = true;
  pack_tape(recorded, tape("packed_addresses"), options).value();
  options.writer.zstd_level = 0;
  pack_tape(recorded, tape("packed_plain"), options).value();
  const Bytes bytes = read_file(tape("recorded"));
  write_file(tape("cut"), bytes.substr(0, bytes.size() * 2 / 3));
  Bytes damaged = bytes;
  damaged[damaged.size() / 3] ^= 4;
  write_file(tape("damaged"), damaged);
  for (const char* name :
       {"recorded", "recorded_plain", "packed", "packed_addresses", "packed_plain", "cut", "damaged"}) {
    const auto reader = TapeReader::open(tape(name)).value();
    write_file(tape(name).replace_extension(".txt"), tape_text(reader));
  }
}

}  // namespace
}  // namespace heaptape::format

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: golden_make FOLDER\n");
    return 2;
  }
  heaptape::format::make_all(argv[1]);
}
