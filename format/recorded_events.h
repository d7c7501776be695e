// Blocks of recorded events: runs of several threads' streams, as columns.
//
// Guarantees: what the writer encoded the reader decodes, field for field, except that a property
// which the kind does not carry (event_codec.h) comes back as 0. The reader takes any bytes: an
// error, or events. Each keeps its buffers; one thread each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/base/error.h"
#include "format/column.h"
#include "format/event.h"
#include "format/event_codec.h"
#include "format/message.h"

namespace heaptape::format {

// Events of one thread, in its order.
struct RunOfEvents {
  ThreadIndex thread{};
  std::uint64_t first = 0;  // number of the first among the thread's events on the tape
  std::span<const RecordedEvent> events;
};

class RecordedEncoder {
 public:
  explicit RecordedEncoder(int zstd_level) : columns_(zstd_level) {}

  // The payload of one block; the runs have at least one event each, and at most
  // `max_events_per_block` together. Valid until the next call.
  [[nodiscard]] Result<PayloadView> encode(std::span<const RunOfEvents> runs);

 private:
  ColumnWriter columns_;
  AddressWriter addresses_;
  SiteWriter sites_;
  std::vector<EventRun> runs_;
  Payload payload_;
};

class RecordedDecoder {
 public:
  // Decodes all runs of a block, one after the other, into `events`.
  [[nodiscard]] Result<void> decode(const RecordedBlock& block, std::vector<RecordedEvent>& events);

 private:
  ColumnReader columns_;
  AddressReader addresses_;
  SiteReader sites_;
};

}  // namespace heaptape::format
