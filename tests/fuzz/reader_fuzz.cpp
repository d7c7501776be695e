// Bytes become edits of a sound tape: opened, read to the end through the cursor, in whatever state it is
// left. Checksums are repaired after the edits unless the input says otherwise, so that the edits reach what
// lies behind them. First byte: bit 1 leaves the checksums, the rest says which tape. Nothing may crash,
// hang, or break what consumers of events rely on.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "format/block.h"
#include "format/reader.h"

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

// The whole golden tapes of tests/golden: both forms, with addresses and without, columns compressed and
// plain (edits of those reach the decoders).
std::vector<std::vector<std::byte>> base_tapes() {
  std::vector<std::vector<std::byte>> tapes;
  const std::filesystem::path folder = HEAPTAPE_GOLDEN_FOLDER;
  for (const char* name : {"recorded", "recorded_plain", "packed", "packed_addresses", "packed_plain"}) {
    tapes.push_back(contents(folder / (std::string("v1_") + name + ".tape")));
  }
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

void read_all(const std::string& path, Verify verify) {
  const auto reader = TapeReader::open(path, verify);
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
  std::vector<std::byte> tape = bases[data[0] / 4U % bases.size()];
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
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  read_all(path, Verify::whole);
  read_all(path, Verify::index);
  ::close(fd);
  return 0;
}
