#include "format/recorded_events.h"

#include <algorithm>

namespace heaptape::format {
namespace {

constexpr unsigned phase_shift = 6;  // above the kind

}  // namespace

Result<PayloadView> RecordedEncoder::encode(std::span<const RunOfEvents> runs) {
  std::size_t count = 0;
  bool any_site = false;
  for (const RunOfEvents& run : runs) {
    count += run.events.size();
    any_site = any_site || std::any_of(run.events.begin(), run.events.end(),
                                       [](const RecordedEvent& e) { return e.site != SiteId::none; });
  }
  if (count == 0 || count > max_events_per_block) {
    return failure(ExitCode::usage, "a block takes 1 to {} events, not {}", max_events_per_block, count);
  }
  columns_.start();
  ByteSink& kinds = columns_.open(ColumnId::kind, count);
  ByteSink& sizes = columns_.open(ColumnId::size, count * max_varint_bytes);
  ByteSink& alignments = columns_.open(ColumnId::alignment, count * max_alignment_bytes);
  ByteSink& addresses = columns_.open(ColumnId::address, count * max_varint_bytes);
  ByteSink& new_addresses = columns_.open(ColumnId::new_address, count * max_varint_bytes);
  ByteSink& stamps = columns_.open(ColumnId::stamp, count * max_varint_bytes);
  ByteSink* sites = any_site ? &columns_.open(ColumnId::site, count * max_site_bytes) : nullptr;
  addresses_.start(count);
  sites_.start();
  runs_.clear();

  for (const RunOfEvents& run : runs) {
    std::uint64_t stamp = run.events.front().stamp;
    std::uint64_t begun_size = 0;
    runs_.push_back({run.thread, static_cast<std::uint32_t>(run.events.size()), run.first, stamp,
                     run.events.back().stamp});
    for (const RecordedEvent& e : run.events) {
      const auto kind = static_cast<std::uint8_t>(e.kind);
      if (kind >= kind_limit) {
        return failure(ExitCode::usage, "an event of kind {} cannot be written: kinds are below {}", kind,
                       kind_limit);
      }
      kinds.put_byte(static_cast<std::uint8_t>(kind | static_cast<unsigned>(e.phase) << phase_shift));
      stamps.put(e.stamp - stamp);
      stamp = e.stamp;
      const KindTraits traits = traits_of_kind[kind];
      if (traits.size) {
        if (e.phase == Phase::begin) {
          begun_size = e.size_bytes;
          sizes.put(e.size_bytes);
        } else {
          sizes.put(e.phase == Phase::whole ? e.size_bytes : e.size_bytes ^ begun_size);
        }
      }
      if (traits.alignment) {
        put_alignment(alignments, e.alignment);
      }
      if (traits.address) {
        addresses_.put(addresses, new_addresses, e.address);
      }
      if (sites != nullptr) {
        sites_.put(*sites, e.site);
      }
    }
  }
  const auto columns = columns_.finish();
  if (!columns) {
    return Failure(columns.error());
  }
  encode_recorded(runs_, *columns, payload_);
  return PayloadView(payload_);
}

Result<void> RecordedDecoder::decode(const RecordedBlock& block, std::vector<RecordedEvent>& events) {
  const std::uint64_t count = block.count;
  HEAPTAPE_TRY(columns_.start(block.columns));
  Result<ByteSource> sources[7];
  struct Wanted {
    ColumnId id;
    std::size_t max_bytes;
  };
  constexpr Wanted wanted[] = {{ColumnId::kind, 1},
                               {ColumnId::size, max_varint_bytes},
                               {ColumnId::alignment, max_alignment_bytes},
                               {ColumnId::address, max_varint_bytes},
                               {ColumnId::new_address, max_varint_bytes},
                               {ColumnId::stamp, max_varint_bytes},
                               {ColumnId::site, max_site_bytes}};
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    sources[i] = columns_.open(wanted[i].id, count * wanted[i].max_bytes);
    if (!sources[i]) {
      return Failure(sources[i].error());
    }
  }
  auto& [kinds, sizes, alignments, addresses, new_addresses, stamps, site_codes] = sources;
  const bool any_site = columns_.has(ColumnId::site);
  addresses_.start(count);
  sites_.start();

  events.resize(count);
  RecordedEvent* e = events.data();
  for (const EventRun& run : block.runs) {
    std::uint64_t stamp = run.first_stamp;
    std::uint64_t begun_size = 0;
    for (std::uint32_t i = 0; i < run.count; ++i, ++e) {
      const std::uint8_t code = kinds->get_byte();
      *e = RecordedEvent{};
      e->kind = Kind{static_cast<std::uint8_t>(code & (kind_limit - 1))};
      e->phase = Phase{static_cast<std::uint8_t>(code >> phase_shift)};
      stamp += stamps->get();
      e->stamp = stamp;
      const KindTraits traits = traits_of_kind[code & (kind_limit - 1)];
      if (traits.size) {
        e->size_bytes = sizes->get();
        if (e->phase == Phase::begin) {
          begun_size = e->size_bytes;
        } else if (e->phase != Phase::whole) {
          e->size_bytes ^= begun_size;
        }
      }
      if (traits.alignment) {
        e->alignment = get_alignment(*alignments);
      }
      if (traits.address) {
        e->address = addresses_.get(*addresses, *new_addresses);
      }
      if (any_site) {
        e->site = sites_.get(*site_codes);
      }
    }
  }
  for (const Result<ByteSource>& source : sources) {
    if (source->bad() || !source->at_end()) {
      return failure(ExitCode::bad_tape, "the columns do not fit the events");
    }
  }
  if (addresses_.bad() || sites_.bad()) {
    return failure(ExitCode::bad_tape, "an event refers to one that is not there");
  }
  return {};
}

}  // namespace heaptape::format
