// Real threads that allocate, free, resize and hand over blocks through malloc, stamped as the
// recorder does it and drained by a collector thread, with the truth written into the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/cursor.h"
#include "format/event.h"
#include "format/tape.h"

namespace heaptape::format::merge_test {

// What a thread notes of one event; the number written into a block tells which object it is.
struct Note {
  std::uint64_t stamp;
  std::uint64_t address;
  std::uint64_t object;  // acquired or released; of a realloc, begin tells the old one and end the new one
  std::uint32_t size_bytes;
  Kind kind;
  Phase phase;

  [[nodiscard]] RecordedEvent event() const;
};

struct ThreadsRecording {
  struct Item {  // thread == watermark: everything before `mark` has been drained
    static constexpr std::uint32_t watermark = ~std::uint32_t{0};
    std::uint32_t thread;
    std::uint32_t from;
    std::uint32_t to;
    Watermark mark;
  };
  TapeHeader header;
  std::vector<std::vector<Note>> notes;  // by thread
  std::vector<Item> items;

  [[nodiscard]] std::size_t events() const;
};

[[nodiscard]] constexpr bool threads_can_be_stamped() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}
[[nodiscard]] ThreadsRecording record_threads(std::uint32_t threads, std::uint32_t events_per_thread,
                                              std::uint64_t seed);

struct ThreadsOutcome {
  MergeReport report;
  std::uint64_t events = 0;
  std::uint64_t wrong_pairs = 0;
  double merge_seconds = 0;
};
// Merges it and compares every event with the truth; without the note that is to be left out, if any.
[[nodiscard]] ThreadsOutcome merge_threads(const ThreadsRecording& recording,
                                           std::uint32_t without_thread = ~0U, std::size_t without_note = 0);

}  // namespace heaptape::format::merge_test
