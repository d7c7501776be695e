// Blocks of packed events: the merged order as columns, objects by number.
//
// What follows from other events is not stored: indexes and objects count up, slots and released
// sizes follow from the objects (packed_cursor.cpp). Times are kept to the microsecond. The
// decoder takes any bytes: an error, or events. Each keeps its buffers; one thread each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "format/base/error.h"
#include "format/column.h"
#include "format/event.h"
#include "format/event_codec.h"
#include "format/message.h"

namespace heaptape::format {

// What an event does to objects follows from its kind and flags. It tells what it releases, or tried
// to; it releases at most that; it yields an object.
[[nodiscard]] constexpr bool has_any(const Event& event, std::initializer_list<EventFlag> flags) noexcept {
  unsigned mask = 0;
  for (const EventFlag flag : flags) {
    mask |= static_cast<unsigned>(flag);
  }
  return (event.flags & mask) != 0;
}
[[nodiscard]] constexpr KindTraits traits_of(const Event& event) noexcept {
  return traits_of_kind[static_cast<std::uint8_t>(event.kind) % kind_limit];
}
[[nodiscard]] constexpr bool tells_release(const Event& event) noexcept {
  return traits_of(event).releases || event.has(EventFlag::implied);
}
[[nodiscard]] constexpr bool may_release(const Event& event) noexcept {
  return tells_release(event) && !has_any(event, {EventFlag::failed, EventFlag::unfinished});
}
[[nodiscard]] constexpr bool yields_object(const Event& event) noexcept {
  return traits_of(event).yields && !has_any(event, {EventFlag::failed, EventFlag::freeing_realloc,
                                                     EventFlag::unfinished, EventFlag::implied});
}

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

  // Begins a block, whose payload must stay.
  [[nodiscard]] Result<void> start(const PackedBlock& block);
  // The next events of the block, as many as fit into `events`; 0: no more. Fills everything but
  // slots, released sizes, and addresses of objects that are released.
  [[nodiscard]] Result<std::size_t> next(std::span<Event> events);

 private:
  enum Source {
    kinds,
    flags,
    threads,
    times,
    sizes,
    alignments,
    releases,
    addresses,
    new_addresses,
    site_codes
  };
  static constexpr std::size_t source_count = 10;

  [[nodiscard]] Result<void> check_end() const;
  void decode(Event& event);

  ColumnReader columns_;
  std::array<ByteSource, source_count> sources_;
  AddressReader addresses_;
  SiteReader sites_;
  std::uint64_t left_ = 0;  // events of the block to come
  std::uint64_t index_ = 0;
  std::uint64_t next_object_ = 1;
  std::uint64_t released_before_ = 0;
  std::uint64_t time_us_ = 0;
  std::uint64_t thread_ = 0;
  bool any_site_ = false;
  bool keeps_addresses_ = false;
  bool bad_ = false;  // an event refers to what is not there
};

}  // namespace heaptape::format
