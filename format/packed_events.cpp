#include "format/packed_events.h"

#include <algorithm>
#include <limits>

namespace heaptape::format {
namespace {

// Above the kind.
constexpr std::uint8_t has_flags = 0x40;
constexpr std::uint8_t thread_changes = 0x80;

constexpr std::size_t max_flags_bytes = 3;
// So that numbers of objects and nanoseconds cannot overflow.
constexpr std::uint64_t max_objects = 1ULL << 60;
constexpr std::int64_t max_time_us = std::numeric_limits<std::int64_t>::max() / 1000;

std::int64_t microseconds(std::int64_t ns) noexcept { return ns / 1000 - (ns % 1000 < 0 ? 1 : 0); }

// A released object: 0 for none; even, how many births ago it was born; odd, where it lies from the
// one released before. The smaller one.
std::uint64_t release_code(std::uint64_t object, std::uint64_t next_object, std::uint64_t previous) noexcept {
  if (object == 0) {
    return 0;
  }
  const std::uint64_t age = next_object - object;
  const std::uint64_t step = zigzag(object - previous);
  return step < age ? 2 * step + 1 : 2 * age;
}
std::uint64_t released_object(std::uint64_t code, std::uint64_t next_object,
                              std::uint64_t previous) noexcept {
  if (code == 0) {
    return 0;
  }
  return (code & 1) != 0 ? previous + unzigzag(code >> 1) : next_object - (code >> 1);
}

}  // namespace

Result<PayloadView> PackedEncoder::encode(std::span<const Event> events) {
  const std::size_t count = events.size();
  if (count == 0 || count > max_events_per_block) {
    return failure(ExitCode::usage, "a block takes 1 to {} events, not {}", max_events_per_block, count);
  }
  const bool any_site =
      std::any_of(events.begin(), events.end(), [](const Event& e) { return e.site != SiteId::none; });
  columns_.start();
  ByteSink& kinds = columns_.open(ColumnId::kind, count);
  ByteSink& flags = columns_.open(ColumnId::flags, count * max_flags_bytes);
  ByteSink& threads = columns_.open(ColumnId::thread, count * max_varint_bytes);
  ByteSink& times = columns_.open(ColumnId::time, count * max_varint_bytes);
  ByteSink& sizes = columns_.open(ColumnId::size, count * max_varint_bytes);
  ByteSink& alignments = columns_.open(ColumnId::alignment, count * max_alignment_bytes);
  ByteSink& releases = columns_.open(ColumnId::released, count * max_varint_bytes);
  ByteSink& addresses = columns_.open(ColumnId::address, 2 * count * max_varint_bytes);
  ByteSink& new_addresses = columns_.open(ColumnId::new_address, 2 * count * max_varint_bytes);
  ByteSink* sites = any_site ? &columns_.open(ColumnId::site, count * max_site_bytes) : nullptr;
  addresses_.start(2 * count);
  sites_.start();
  block_.count = static_cast<std::uint32_t>(count);
  block_.first = next_index_;
  block_.first_object = next_object_;
  block_.first_time_us = microseconds(events.front().time_ns);
  block_.last_time_us = microseconds(events.back().time_ns);

  std::uint64_t time = static_cast<std::uint64_t>(block_.first_time_us);
  std::uint64_t released_before = next_object_;
  const ThreadIndex* thread = nullptr;
  for (const Event& e : events) {
    const auto kind = static_cast<std::uint8_t>(e.kind);
    const auto object = static_cast<std::uint64_t>(e.object);
    const auto released = static_cast<std::uint64_t>(e.released);
    if (kind >= kind_limit || e.index != next_index_ || released >= next_object_ ||
        object != (yields_object(e) ? next_object_ : 0) || (released != 0 && !may_release(e))) {
      return failure(ExitCode::usage,
                     "event {} cannot be written: its kind, index or objects do not follow from those before",
                     e.index);
    }
    const bool other_thread = thread == nullptr || *thread != e.thread;
    kinds.put_byte(static_cast<std::uint8_t>(kind | (e.flags != 0 ? has_flags : 0) |
                                             (other_thread ? thread_changes : 0)));
    if (e.flags != 0) {
      flags.put(e.flags);
    }
    if (other_thread) {
      threads.put(static_cast<std::uint32_t>(e.thread));
      thread = &e.thread;
    }
    const auto now = static_cast<std::uint64_t>(microseconds(e.time_ns));
    times.put(zigzag(now - time));
    time = now;
    const KindTraits traits = traits_of_kind[kind];
    if (traits.size) {
      sizes.put(e.size_bytes);
    }
    if (traits.alignment) {
      put_alignment(alignments, e.alignment);
    }
    if (tells_release(e)) {
      releases.put(release_code(released, next_object_, released_before));
      if (released != 0) {
        released_before = released;
      } else if (keeps_addresses_) {
        addresses_.put(addresses, new_addresses, e.released_address);
      }
    }
    if (object != 0) {
      ++next_object_;
      if (keeps_addresses_) {
        addresses_.put(addresses, new_addresses, e.address);
      }
    }
    if (sites != nullptr) {
      sites_.put(*sites, e.site);
    }
    ++next_index_;
  }
  const auto columns = columns_.finish();
  if (!columns) {
    return Failure(columns.error());
  }
  encode_packed(block_, *columns, payload_);
  return PayloadView(payload_);
}

Result<void> PackedDecoder::start(const PackedBlock& block) {
  struct Wanted {
    ColumnId id;
    std::size_t max_bytes;
  };
  // In the order of `Source`.
  constexpr std::array<Wanted, source_count> wanted = {{{ColumnId::kind, 1},
                                                        {ColumnId::flags, max_flags_bytes},
                                                        {ColumnId::thread, max_varint_bytes},
                                                        {ColumnId::time, max_varint_bytes},
                                                        {ColumnId::size, max_varint_bytes},
                                                        {ColumnId::alignment, max_alignment_bytes},
                                                        {ColumnId::released, max_varint_bytes},
                                                        {ColumnId::address, 2 * max_varint_bytes},
                                                        {ColumnId::new_address, 2 * max_varint_bytes},
                                                        {ColumnId::site, max_site_bytes}}};
  left_ = 0;
  if (block.first_object == 0 || block.first_object > max_objects) {
    return failure(ExitCode::bad_tape, "a block begins with object {}", block.first_object);
  }
  HEAPTAPE_TRY(columns_.start(block.columns));
  for (std::size_t i = 0; i < source_count; ++i) {
    const auto source = columns_.open(wanted[i].id, std::uint64_t{block.count} * wanted[i].max_bytes);
    if (!source) {
      return Failure(source.error());
    }
    sources_[i] = *source;
  }
  any_site_ = columns_.has(ColumnId::site);
  addresses_.start(2 * std::size_t{block.count});
  sites_.start();
  left_ = block.count;
  index_ = block.first;
  next_object_ = block.first_object;
  released_before_ = next_object_;
  time_us_ = static_cast<std::uint64_t>(block.first_time_us);
  thread_ = 0;
  bad_ = false;
  return check_end();
}

inline void PackedDecoder::decode(Event& e) {
  const std::uint8_t code = sources_[kinds].get_byte();
  e = Event{};
  e.index = index_++;
  e.kind = Kind{static_cast<std::uint8_t>(code & (kind_limit - 1))};
  if ((code & has_flags) != 0) {
    e.flags = static_cast<std::uint16_t>(sources_[flags].get());
  }
  if ((code & thread_changes) != 0) {
    thread_ = sources_[threads].get();
  }
  e.thread = ThreadIndex{static_cast<std::uint32_t>(thread_)};
  time_us_ += unzigzag(sources_[times].get());
  const auto time_us = static_cast<std::int64_t>(time_us_);
  bad_ = bad_ || time_us > max_time_us || time_us < -max_time_us;
  e.time_ns = static_cast<std::int64_t>(time_us_ * 1000);
  const KindTraits traits = traits_of_kind[code & (kind_limit - 1)];
  if (traits.size) {
    e.size_bytes = sources_[sizes].get();
  }
  if (traits.alignment) {
    e.alignment = get_alignment(sources_[alignments]);
  }
  if (tells_release(e)) {
    const std::uint64_t release = sources_[releases].get();
    if (release != 0) {
      const std::uint64_t object = released_object(release, next_object_, released_before_);
      bad_ = bad_ || object == 0 || object >= next_object_ || !may_release(e);
      e.released = ObjectId{object};
      released_before_ = object;
    } else if (keeps_addresses_) {
      e.released_address = addresses_.get(sources_[addresses], sources_[new_addresses]);
    }
  }
  if (yields_object(e)) {
    e.object = ObjectId{next_object_++};
    if (keeps_addresses_) {
      e.address = addresses_.get(sources_[addresses], sources_[new_addresses]);
    }
  }
  if (any_site_) {
    e.site = sites_.get(sources_[site_codes]);
  }
}

Result<std::size_t> PackedDecoder::next(std::span<Event> events) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(events.size(), left_));
  for (Event& event : events.first(count)) {
    decode(event);
  }
  left_ -= count;
  HEAPTAPE_TRY(check_end());
  return count;
}

Result<void> PackedDecoder::check_end() const {
  for (const ByteSource& source : sources_) {
    if (source.bad() || (left_ == 0 && !source.at_end())) {
      return failure(ExitCode::bad_tape, "the columns do not fit the events");
    }
  }
  if (bad_ || addresses_.bad() || sites_.bad()) {
    return failure(ExitCode::bad_tape, "an event refers to one that is not there");
  }
  return {};
}

}  // namespace heaptape::format
