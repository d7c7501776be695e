#include "format/index.h"

#include <limits>

namespace heaptape::format {
namespace {

constexpr std::size_t max_entry_bytes = 5 * max_varint_bytes;

bool has_events(BlockKind kind) noexcept {
  return kind == BlockKind::recorded_events || kind == BlockKind::packed_events;
}

}  // namespace

void IndexBuilder::add(const IndexEntry& entry) {
  ByteSink sink;
  sink.reset(max_entry_bytes);
  sink.put(static_cast<std::uint64_t>(entry.kind));
  sink.put(entry.length_bytes / 8);
  if (has_events(entry.kind)) {
    sink.put(entry.events);
    sink.put(zigzag(entry.first - previous_first_));
    sink.put(entry.last - entry.first);
    previous_first_ = entry.first;
  }
  bytes_.insert(bytes_.end(), sink.bytes().begin(), sink.bytes().end());
}

Result<IndexEntry> IndexSource::next() {
  const std::uint64_t kind = bytes_.get();
  const std::uint64_t words = bytes_.get();
  IndexEntry entry;
  entry.kind = BlockKind{static_cast<std::uint16_t>(kind)};
  std::uint64_t events = 0;
  if (has_events(entry.kind)) {
    events = bytes_.get();
    entry.first = previous_first_ + unzigzag(bytes_.get());
    entry.last = entry.first + bytes_.get();
    previous_first_ = entry.first;
  }
  if (bytes_.bad() || kind > std::numeric_limits<std::uint16_t>::max() || words > max_payload_bytes / 8 ||
      events > max_events_per_block) {
    return failure(ExitCode::bad_tape, "the index is malformed");
  }
  entry.length_bytes = static_cast<std::uint32_t>(words * 8);
  entry.events = static_cast<std::uint32_t>(events);
  return entry;
}

}  // namespace heaptape::format
