// Blocks of packed events: the merged order as columns, objects by number.
//
// What follows from other events is not stored: indexes and objects count up, slots and released
// sizes follow from the objects (packed_cursor.cpp). Times are kept to the microsecond. The
// decoder takes any bytes: an error, or events. Each keeps its buffers; one thread each.
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

// Whether an event yields an object, and whether it may release one: both follow from kind and flags.
[[nodiscard]] bool yields_object(const Event& event) noexcept;
[[nodiscard]] bool may_release(const Event& event) noexcept;

class PackedEncoder {
 public:
  PackedEncoder(int zstd_level, bool keeps_addresses)
      : columns_(zstd_level), keeps_addresses_(keeps_addresses) {}

  // The payload of one block: 1 to `max_events_per_block` events that continue the ones before. An
  // error where they do not: an index or object out of order. Valid until the next call.
  [[nodiscard]] Result<PayloadView> encode(std::span<const Event> events);
  // Of the block that was encoded last.
  [[nodiscard]] const PackedBlock& block() const noexcept { return block_; }

 private:
  ColumnWriter columns_;
  AddressWriter addresses_;
  SiteWriter sites_;
  PackedBlock block_;
  Payload payload_;
  std::uint64_t next_index_ = 0;
  std::uint64_t next_object_ = 1;
  bool keeps_addresses_ = false;
};

class PackedDecoder {
 public:
  explicit PackedDecoder(bool keeps_addresses) : keeps_addresses_(keeps_addresses) {}

  // Fills everything but slots, released sizes, and addresses of objects that are released.
  [[nodiscard]] Result<void> decode(const PackedBlock& block, std::vector<Event>& events);

 private:
  ColumnReader columns_;
  AddressReader addresses_;
  SiteReader sites_;
  bool keeps_addresses_ = false;
};

}  // namespace heaptape::format
