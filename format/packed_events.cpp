#include "format/packed_events.h"

#include <algorithm>

namespace heaptape::format {
namespace {

// Above the kind.
constexpr std::uint8_t has_flags = 0x40;
constexpr std::uint8_t thread_changes = 0x80;

constexpr std::size_t max_flags_bytes = 3;

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

bool yields_object(const Event& event) noexcept {
  return (is_acquire(event.kind) || is_realloc(event.kind)) && !event.has(EventFlag::failed) &&
         !event.has(EventFlag::freeing_realloc) && !event.has(EventFlag::unfinished) &&
         !event.has(EventFlag::implied);
}

bool may_release(const Event& event) noexcept {
  return is_release(event.kind) || is_realloc(event.kind) || event.has(EventFlag::implied);
}

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
    if (may_release(e)) {
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

Result<void> PackedDecoder::decode(const PackedBlock& block, std::vector<Event>& events) {
  const std::uint64_t count = block.count;
  HEAPTAPE_TRY(columns_.start(block.columns));
  struct Wanted {
    ColumnId id;
    std::size_t max_bytes;
  };
  constexpr Wanted wanted[] = {{ColumnId::kind, 1},
                               {ColumnId::flags, max_flags_bytes},
                               {ColumnId::thread, max_varint_bytes},
                               {ColumnId::time, max_varint_bytes},
                               {ColumnId::size, max_varint_bytes},
                               {ColumnId::alignment, max_alignment_bytes},
                               {ColumnId::released, max_varint_bytes},
                               {ColumnId::address, 2 * max_varint_bytes},
                               {ColumnId::new_address, 2 * max_varint_bytes},
                               {ColumnId::site, max_site_bytes}};
  Result<ByteSource> sources[std::size(wanted)];
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    sources[i] = columns_.open(wanted[i].id, count * wanted[i].max_bytes);
    if (!sources[i]) {
      return Failure(sources[i].error());
    }
  }
  auto& [kinds, flags, threads, times, sizes, alignments, releases, addresses, new_addresses, site_codes] =
      sources;
  const bool any_site = columns_.has(ColumnId::site);
  addresses_.start(2 * count);
  sites_.start();

  events.resize(count);
  std::uint64_t index = block.first;
  std::uint64_t next_object = block.first_object;
  std::uint64_t released_before = next_object;
  auto time = static_cast<std::uint64_t>(block.first_time_us);
  std::uint64_t thread = 0;
  bool dangling = false;
  for (Event& e : events) {
    const std::uint8_t code = kinds->get_byte();
    e = Event{};
    e.index = index++;
    e.kind = Kind{static_cast<std::uint8_t>(code & (kind_limit - 1))};
    if ((code & has_flags) != 0) {
      e.flags = static_cast<std::uint16_t>(flags->get());
    }
    if ((code & thread_changes) != 0) {
      thread = threads->get();
    }
    e.thread = ThreadIndex{static_cast<std::uint32_t>(thread)};
    time += unzigzag(times->get());
    e.time_ns = static_cast<std::int64_t>(time * 1000);
    const KindTraits traits = traits_of_kind[code & (kind_limit - 1)];
    if (traits.size) {
      e.size_bytes = sizes->get();
    }
    if (traits.alignment) {
      e.alignment = get_alignment(*alignments);
    }
    if (may_release(e)) {
      const std::uint64_t release = releases->get();
      const std::uint64_t released = released_object(release, next_object, released_before);
      if (release != 0) {
        dangling = dangling || released == 0 || released >= next_object;
        e.released = ObjectId{released};
        released_before = released;
      } else if (keeps_addresses_) {
        e.released_address = addresses_.get(*addresses, *new_addresses);
      }
    }
    if (yields_object(e)) {
      e.object = ObjectId{next_object++};
      if (keeps_addresses_) {
        e.address = addresses_.get(*addresses, *new_addresses);
      }
    }
    if (any_site) {
      e.site = sites_.get(*site_codes);
    }
  }
  for (const Result<ByteSource>& source : sources) {
    if (source->bad() || !source->at_end()) {
      return failure(ExitCode::bad_tape, "the columns do not fit the events");
    }
  }
  if (dangling || addresses_.bad() || sites_.bad()) {
    return failure(ExitCode::bad_tape, "an event refers to one that is not there");
  }
  return {};
}

}  // namespace heaptape::format
