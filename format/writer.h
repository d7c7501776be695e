// Writes a tape: blocks appended to a file, each whole or absent.
//
// Guarantees: a block is handed to the kernel in one write; a process killed between blocks leaves
// a tape that reads to its last whole block. Nothing is buffered but the events of blocks that are
// not full yet (16 blocks' worth over all threads), and `watermark` flushes those. Not thread-safe; one
// writer owns one file, which no other writer may hold. A failure is returned, and the writer stays failed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "format/base/error.h"
#include "format/event.h"
#include "format/tape.h"

namespace heaptape::format {

struct WriterOptions {
  int zstd_level = 1;                        // 0: not compressed
  std::uint32_t events_per_block = 1 << 14;  // at most; 1 to `max_events_per_block`
};

class TapeWriter {
 public:
  // Creates (or truncates) `path`, a regular file, and writes the header block.
  [[nodiscard]] static Result<TapeWriter> create(const std::filesystem::path& path, const TapeHeader& header,
                                                 const WriterOptions& options = {});

  TapeWriter(TapeWriter&&) noexcept;
  TapeWriter& operator=(TapeWriter&&) noexcept;
  ~TapeWriter();  // flushes and writes no footer: such a tape says that it was cut

  // Appends events of one thread, in that thread's order (recorded form).
  [[nodiscard]] Result<void> append(ThreadIndex thread, std::span<const RecordedEvent> events);
  // Appends merged events, in merged order (packed form).
  [[nodiscard]] Result<void> append(std::span<const Event> events);

  // Flushes all partial event blocks, then marks that everything published before is on the tape.
  [[nodiscard]] Result<void> watermark(const Watermark& mark);

  // The latest ThreadInfo for a thread index wins; likewise modules by load address.
  [[nodiscard]] Result<void> thread(const ThreadInfo& info);
  [[nodiscard]] Result<void> modules(std::span<const ModuleInfo> modules);
  [[nodiscard]] Result<void> resident(std::span<const ResidentSample> samples);
  [[nodiscard]] Result<void> gap(const Gap& gap);  // flushes that thread's events first
  [[nodiscard]] Result<void> marker(const Marker& marker);

  // Flushes, writes footer and index, closes the file. A packed tape carries its merge report, and
  // what was missing from the tape it was packed from.
  [[nodiscard]] Result<void> finish(const TapeFooter& footer, const struct MergeReport* merged = nullptr,
                                    const struct Damage* source_damage = nullptr);

  [[nodiscard]] std::uint64_t bytes_written() const noexcept;
  [[nodiscard]] std::uint64_t events_written() const noexcept;

 private:
  struct State;
  explicit TapeWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace heaptape::format
