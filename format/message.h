// Payloads: the Cap'n Proto messages inside blocks, to and from plain structs.
//
// Guarantees: this is the only code that sees Cap'n Proto, and its exceptions end here. A payload of
// any bytes yields a struct or an error; what is read is bounded by a small multiple of the
// payload's own size (overlapping or empty lists do not multiply). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/base/error.h"
#include "format/block.h"
#include "format/column.h"
#include "format/cursor.h"
#include "format/event.h"
#include "format/tape.h"

namespace heaptape::format {

using Payload = std::vector<std::uint64_t>;  // words, so that it is aligned
using PayloadView = std::span<const std::uint64_t>;

// Consecutive events of one thread within a block.
struct EventRun {
  ThreadIndex thread{};
  std::uint32_t count = 0;
  std::uint64_t first = 0;  // number of the first among the thread's events on the tape
  std::uint64_t first_stamp = 0;
  std::uint64_t last_stamp = 0;
};
struct RecordedBlock {
  std::vector<EventRun> runs;
  std::uint32_t count = 0;      // of all runs
  std::vector<Column> columns;  // their data lie in the payload
};
struct PackedBlock {
  std::uint32_t count = 0;
  std::uint64_t first = 0;         // index in the merged order
  std::uint64_t first_object = 0;  // what the next object born is called
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::vector<Column> columns;
};
struct FooterBlock {
  TapeFooter footer;
  std::optional<MergeReport> merged;
  struct SourceDamage {  // of the tape that this one was packed from
    bool truncated = false;
    std::uint64_t bad_blocks = 0;
    std::uint64_t skipped_bytes = 0;
    std::uint64_t missing_blocks = 0;
    std::uint64_t missing_events = 0;
  } source_damage;
  std::uint64_t blocks = 0;  // before the footer
  Column index;
};

void encode_header(const TapeHeader& header, Payload& out);
void encode_recorded(std::span<const EventRun> runs, std::span<const Column> columns, Payload& out);
void encode_packed(const PackedBlock& block, std::span<const Column> columns, Payload& out);
void encode_threads(std::span<const ThreadInfo> threads, Payload& out);
void encode_modules(std::span<const ModuleInfo> modules, Payload& out);
void encode_markers(std::span<const Marker> markers, Payload& out);
void encode_resident(std::span<const ResidentSample> samples, Payload& out);
void encode_gap(const Gap& gap, Payload& out);
void encode_watermark(const Watermark& mark, Payload& out);
void encode_footer(const FooterBlock& footer, Payload& out);
void encode_end(std::uint64_t footer_offset, Payload& out);

[[nodiscard]] Result<TapeHeader> decode_header(PayloadView payload);
// Counts are checked: every run has events, all together at most `max_events_per_block`.
[[nodiscard]] Result<RecordedBlock> decode_recorded(PayloadView payload);
[[nodiscard]] Result<PackedBlock> decode_packed(PayloadView payload);
[[nodiscard]] Result<std::vector<ThreadInfo>> decode_threads(PayloadView payload);
[[nodiscard]] Result<std::vector<ModuleInfo>> decode_modules(PayloadView payload);
[[nodiscard]] Result<std::vector<Marker>> decode_markers(PayloadView payload);
[[nodiscard]] Result<std::vector<ResidentSample>> decode_resident(PayloadView payload);
[[nodiscard]] Result<Gap> decode_gap(PayloadView payload);
[[nodiscard]] Result<Watermark> decode_watermark(PayloadView payload);
[[nodiscard]] Result<FooterBlock> decode_footer(PayloadView payload);
[[nodiscard]] Result<std::uint64_t> decode_end(PayloadView payload);

}  // namespace heaptape::format
