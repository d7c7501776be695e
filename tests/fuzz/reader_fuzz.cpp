// Bytes become edits of a sound tape: opened, read to the end through the cursor, in whatever state it is
// left. Checksums are repaired after the edits unless the input says otherwise, so that the edits reach what
// lies behind them. Nothing may crash, hang, or break what consumers of events rely on.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "format/block.h"
#include "format/pack.h"
#include "format/reader.h"
#include "format/writer.h"

namespace {

using namespace heaptape::format;

void require(bool truth, const char* what) {
  if (!truth) {
    std::fprintf(stderr, "tape reader: %s\n", what);
    std::abort();
  }
}

std::vector<std::byte> contents(const std::filesystem::path& path) {
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  require(file != nullptr && std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size(), "no base tape");
  std::fclose(file);
  return bytes;
}

RecordedEvent event(Kind kind, std::uint64_t stamp, std::uint64_t address, std::uint64_t size) {
  RecordedEvent e;
  e.kind = kind;
  e.stamp = stamp;
  e.address = address;
  e.size_bytes = size;
  return e;
}

// A small tape with every kind of block, and the same one packed.
std::array<std::vector<std::byte>, 2> base_tapes() {
  const std::string path = "/tmp/heaptape-reader-fuzz-" + std::to_string(::getpid());
  const std::string packed = path + ".packed";
  {
    TapeHeader header;
    header.program = "/bin/example";
    header.arguments = {"example", "-x"};
    header.ticks_per_second = 1e9;
    auto writer = TapeWriter::create(path, header);
    require(writer.has_value(), "cannot write the base tape");
    std::uint64_t stamp = 100;
    for (std::uint32_t round = 0; round < 3; ++round) {
      for (std::uint32_t t = 0; t < 3; ++t) {
        std::vector<RecordedEvent> events;
        for (std::uint64_t i = 0; i < 6; ++i) {
          const std::uint64_t address = 0x10000 + 0x1000 * t + 0x40 * i;
          events.push_back(event(Kind::malloc, stamp += 10, address, 24 * (i + 1)));
          if (i % 2 == 0) {
            RecordedEvent begin = event(Kind::realloc, stamp += 10, address, 400);
            begin.phase = Phase::begin;
            RecordedEvent end = event(Kind::realloc, stamp += 10, address + 0x800, 400);
            end.phase = Phase::end;
            events.insert(events.end(), {begin, end, event(Kind::free, stamp += 10, address + 0x800, 0)});
          } else {
            events.push_back(event(Kind::operator_delete_sized, stamp += 10, address, 24 * (i + 1)));
          }
        }
        require(writer->append(ThreadIndex{t}, events).has_value(), "cannot append");
      }
      require(
          writer
              ->thread(
                  {.thread = ThreadIndex{round}, .tid = 7, .start_tick = 1, .end_tick = 0, .name = "worker"})
              .has_value(),
          "cannot append a thread");
      require(writer->watermark({.tick = stamp + 1, .time_ns = static_cast<std::int64_t>(stamp)}).has_value(),
              "cannot mark");
    }
    const std::array<ModuleInfo, 1> modules = {{{"/lib/x.so", "abcd", 0x7f0000000000, 4096, 0x7f0000000000}}};
    const std::array<ResidentSample, 2> resident = {{{1, 4096, 4096}, {2, 8192, 4096}}};
    require(writer->modules(modules) && writer->resident(resident), "cannot append facts");
    require(writer->gap({.thread = ThreadIndex{1}, .lost_events = 3, .stamp = stamp}) &&
                writer->marker({.time_ns = 5, .name = "here"}) && writer->finish(TapeFooter{}),
            "cannot finish");
  }
  {
    const auto reader = TapeReader::open(path);
    require(reader.has_value() && pack_tape(*reader, packed, {}).has_value(), "cannot pack");
  }
  std::array<std::vector<std::byte>, 2> tapes = {contents(path), contents(packed)};
  std::filesystem::remove(path);
  std::filesystem::remove(packed);
  return tapes;
}

void repair(std::vector<std::byte>& tape) {
  std::size_t at = 0;
  while (at + block_header_bytes <= tape.size()) {
    std::uint32_t length = 0;
    std::memcpy(&length, tape.data() + at + 12, sizeof length);
    const std::size_t rest = tape.size() - at - block_header_bytes;
    if (length > rest) {
      return;
    }
    BlockHeader header;
    std::uint16_t kind = 0;
    std::memcpy(&kind, tape.data() + at + 8, sizeof kind);
    header.kind = static_cast<BlockKind>(kind);
    header.version = static_cast<std::uint8_t>(tape[at + 10]);
    header.flags = static_cast<std::uint8_t>(tape[at + 11]);
    header.length_bytes = length;
    std::memcpy(&header.sequence, tape.data() + at + 16, sizeof header.sequence);
    header.payload_crc = crc32c({tape.data() + at + block_header_bytes, length});
    const auto bytes = encode_block_header(header);
    std::memcpy(tape.data() + at, bytes.data(), bytes.size());
    at += block_header_bytes + length;
  }
}

void read_all(const std::string& path) {
  const auto reader = TapeReader::open(path);
  if (!reader) {
    require(!reader.error().message().empty(), "an error without words");
    return;
  }
  auto cursor = reader->events();
  if (!cursor) {
    return;
  }
  std::uint64_t index = 0;
  std::vector<bool> live;
  for (;;) {
    const auto events = (*cursor)->next();
    if (!events || events->empty()) {
      break;
    }
    live.resize((*cursor)->slots());
    for (const Event& e : *events) {
      require(e.index == index++, "an index that does not count up");
      if (e.released_slot != SlotIndex::none) {
        const auto slot = static_cast<std::uint32_t>(e.released_slot);
        require(slot < live.size() && live[slot], "a released slot that was not live");
        live[slot] = false;
      }
      if (e.slot != SlotIndex::none) {
        const auto slot = static_cast<std::uint32_t>(e.slot);
        require(slot < live.size() && !live[slot], "an acquired slot that was live");
        live[slot] = true;
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto bases = base_tapes();
  if (size < 1) {
    return 0;
  }
  std::vector<std::byte> tape = bases[data[0] & 1U];
  for (std::size_t i = 1; i + 4 <= size; i += 4) {  // offset, how, value
    const std::size_t offset = (data[i] | static_cast<std::size_t>(data[i + 1]) << 8U) % tape.size();
    switch (data[i + 2] % 4) {
      case 0:
        tape[offset] = static_cast<std::byte>(data[i + 3]);
        break;
      case 1:
        tape[offset] ^= static_cast<std::byte>(data[i + 3]);
        break;
      case 2:
        tape[offset] = static_cast<std::byte>(static_cast<unsigned>(tape[offset]) + data[i + 3]);
        break;
      default:
        if (data[i + 3] > 250 && offset > block_header_bytes) {
          tape.resize(offset);  // cut off
        }
        break;
    }
  }
  if ((data[0] & 2U) == 0) {
    repair(tape);
  }
  const int fd = ::memfd_create("tape", 0);
  require(fd >= 0 && ::write(fd, tape.data(), tape.size()) == static_cast<ssize_t>(tape.size()),
          "no memory file");
  read_all("/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  return 0;
}
