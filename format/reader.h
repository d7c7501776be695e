// Reads tapes of both forms, whole, cut off or damaged.
//
// Guarantees: untrusted input never asserts, never allocates a size taken from the file unchecked,
// never crashes; every whole block of a damaged tape is found. `open` fails only where no header
// block can be read (or it is no tape at all, or of a newer version). Reading never changes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "format/base/error.h"
#include "format/cursor.h"
#include "format/tape.h"

namespace heaptape::format {

// What is missing from a tape; all zero for a sound one.
struct Damage {
  bool truncated = false;            // no footer, or an incomplete last block
  std::uint64_t bad_blocks = 0;      // runs of bytes that are no whole block of this tape
  std::uint64_t skipped_bytes = 0;   // in those runs
  std::uint64_t missing_blocks = 0;  // by sequence numbers
  std::uint64_t missing_events = 0;  // by the threads' event numbers, as far as they tell
  std::vector<std::string> notes;    // one line each: what, at which byte
  [[nodiscard]] bool any() const noexcept { return truncated || bad_blocks != 0 || missing_blocks != 0; }
};

// Everything but the events.
struct TapeInfo {
  TapeHeader header;
  std::vector<ThreadInfo> threads;  // sorted by index; every thread with events is there
  std::vector<ModuleInfo> modules;
  std::vector<ResidentSample> resident;
  std::vector<Gap> gaps;
  std::vector<Marker> markers;
  TapeFooter footer;  // reason == unknown where the footer is missing
  Damage damage;
  std::uint64_t events = 0;  // stored events found by the scan
  std::uint64_t blocks = 0;
  std::uint64_t file_bytes = 0;
  bool index_rebuilt = false;  // the index was missing or wrong; found by one scan
};

enum class Verify {
  whole,  // read and check all of the tape: the damage report is complete
  index,  // trust the index where there is one: fast on a large tape; damage shows up as an error
          // of the cursor that meets it
};

class TapeReader {
 public:
  [[nodiscard]] static Result<TapeReader> open(const std::filesystem::path& path,
                                               Verify verify = Verify::whole);

  TapeReader(TapeReader&&) noexcept;
  TapeReader& operator=(TapeReader&&) noexcept;
  ~TapeReader();

  [[nodiscard]] const TapeInfo& info() const noexcept;

  // Merged events from the beginning. The reader must outlive the cursor; several may be open.
  [[nodiscard]] Result<std::unique_ptr<EventCursor>> events() const;

  // The unmerged stream of a recorded tape, block by block in file order: for checks and tests.
  // `visit` returns false to stop. Packed tapes: a usage error.
  using RecordedVisitor = bool (*)(void* context, ThreadIndex, const RecordedEvent*, std::size_t);
  [[nodiscard]] Result<void> visit_recorded(RecordedVisitor visit, void* context) const;

 private:
  struct State;
  explicit TapeReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace heaptape::format
