// Packs a tape: from threads' streams, or any tape, to the one merged order with objects for addresses.
//
// Guarantees: the packed tape replays and reports as its source does, times to the microsecond;
// what was missing from the source is still told (merge report, damage). The output appears under
// its name only when it is whole; whatever had that name stays until then. Streams: memory is
// bounded as for reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "format/base/error.h"
#include "format/cursor.h"
#include "format/reader.h"
#include "format/writer.h"

namespace heaptape::format {

struct PackOptions {
  bool keep_addresses = false;  // if the source has them
  WriterOptions writer{.zstd_level = 3, .events_per_block = 1 << 16};
  std::function<void(double)> progress;  // share done, 0 to 1
};

struct PackSummary {
  std::uint64_t events = 0;
  std::uint64_t source_bytes = 0;
  std::uint64_t packed_bytes = 0;
  bool keeps_addresses = false;
  MergeReport merged;
};

[[nodiscard]] Result<PackSummary> pack_tape(const TapeReader& source, const std::filesystem::path& path,
                                            const PackOptions& options = {});

}  // namespace heaptape::format
