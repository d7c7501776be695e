// Bytes become the words of a ring that a hostile program has published: the reader must end, stay inside
// the ring, and hand out only calls that exist, with stamps that never run backwards.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "recorder/ring/reader.h"
#include "tests/recorder/ring_memory.h"

namespace {

using namespace heaptape::ring;

void require(bool truth, const char* what) {
  if (!truth) {
    std::fprintf(stderr, "ring reader: %s\n", what);
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint32_t rings = 4;
  static const RingMemory memory(rings);
  if (size < 3) {
    return 0;
  }
  // The first bytes say where in the ring the words begin, and by how much `head` lies.
  const std::uint64_t start = ring_words - (data[0] % 32U);
  const std::uint64_t lie = data[1] == 0xff ? ring_words * 2 : 0;
  Ring& ring = memory.view().ring(1);
  ring.header.head.store(0, std::memory_order_relaxed);
  ring.header.tail.store(0, std::memory_order_relaxed);
  RingReader reader(ring, rings);
  ring.header.head.store(start, std::memory_order_release);
  reader.restart_at_head();
  const std::size_t words = (size - 2) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + 2 + i * sizeof word, sizeof word);
    ring.words[(start + i) & ring_mask].store(word, std::memory_order_relaxed);
  }
  ring.header.head.store(start + words + lie, std::memory_order_release);

  std::uint64_t last_stamp = 0;
  std::array<RingRecord, 7> out;
  std::uint64_t records = 0;
  for (;;) {
    const ReadResult result = reader.read(out.data(), out.size());
    require(result.count <= out.size(), "more records than room");
    for (std::size_t i = 0; i < result.count; ++i) {
      const RingRecord& r = out[i];
      if (r.type == RingRecord::Type::event) {
        require(is_known(r.call), "a call that does not exist");
        require(is_realloc(r.call) == (r.phase != Phase::whole), "a phase that does not fit the call");
        require(r.stamp >= last_stamp, "a stamp that runs backwards");
      }
      if (r.type == RingRecord::Type::thread_start || r.type == RingRecord::Type::carry_on) {
        last_stamp = r.stamp;
      } else if (r.type != RingRecord::Type::gap) {
        last_stamp = r.stamp;
      }
      if (r.type == RingRecord::Type::jump || r.type == RingRecord::Type::carry_on) {
        require(r.value < rings, "a ring that does not exist");
      }
    }
    records += result.count;
    require(records <= words, "more records than words");
    reader.release();
    if (result.status == ReadStatus::drained || result.status == ReadStatus::damaged) {
      return 0;
    }
    require(result.count != 0, "no progress");
  }
}
