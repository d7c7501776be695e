#include "format/contents.h"

#include <algorithm>
#include <utility>

namespace heaptape::format {
namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

Failure refused(const Error& error) { return Failure(error); }

}  // namespace

Result<void> ContentsBuilder::take_header(PayloadView payload) {
  auto header = decode_header(payload);
  if (!header) {
    return refused(header.error());
  }
  if (has_header_ && header->tape_id != contents_.info.header.tape_id) {
    return failure(ExitCode::bad_tape, "it belongs to another tape");
  }
  if (!has_header_) {
    contents_.info.header = std::move(*header);
    has_header_ = true;
  }
  return {};
}

Result<void> ContentsBuilder::take_recorded(PayloadView payload) {
  const auto block = decode_recorded(payload);
  if (!block) {
    return refused(block.error());
  }
  if (block->runs.empty()) {
    return failure(ExitCode::bad_tape, "a block of events without events");
  }
  entry_.events = block->count;
  entry_.first = block->runs.front().first_stamp;
  entry_.last = entry_.first;
  for (const EventRun& run : block->runs) {
    std::uint64_t& next = next_of_thread_[static_cast<std::uint32_t>(run.thread)];
    if (run.first < next) {
      return failure(ExitCode::bad_tape, "events of thread {} are there twice",
                     static_cast<std::uint32_t>(run.thread));
    }
    damage().missing_events += run.first - next;
    next = run.first + run.count;
    entry_.first = std::min(entry_.first, run.first_stamp);
    entry_.last = std::max(entry_.last, run.last_stamp);
  }
  recorded_events_ += block->count;
  return {};
}

Result<void> ContentsBuilder::take_packed(PayloadView payload) {
  const auto block = decode_packed(payload);
  if (!block) {
    return refused(block.error());
  }
  if (block->first < next_packed_) {
    return failure(ExitCode::bad_tape, "events are there twice");
  }
  damage().missing_events += block->first - next_packed_;
  next_packed_ = block->first + block->count;
  entry_.events = block->count;
  entry_.first = static_cast<std::uint64_t>(block->first_time_us);
  entry_.last = static_cast<std::uint64_t>(block->last_time_us);
  packed_events_ += block->count;
  return {};
}

Result<void> ContentsBuilder::take(const BlockPlace& place, PayloadView payload) {
  TapeInfo& info = contents_.info;
  entry_ = {place.kind, place.length_bytes, 0, 0, 0};
  switch (place.kind) {
    case BlockKind::header:
      HEAPTAPE_TRY(take_header(payload));
      break;
    case BlockKind::recorded_events:
      HEAPTAPE_TRY(take_recorded(payload));
      contents_.blocks.push_back(place);
      break;
    case BlockKind::packed_events:
      HEAPTAPE_TRY(take_packed(payload));
      contents_.blocks.push_back(place);
      break;
    case BlockKind::threads: {
      auto threads = decode_threads(payload);
      if (!threads) {
        return refused(threads.error());
      }
      for (ThreadInfo& thread : *threads) {
        const auto index = static_cast<std::uint32_t>(thread.thread);
        threads_[index] = std::move(thread);
      }
      break;
    }
    case BlockKind::modules: {
      auto modules = decode_modules(payload);
      if (!modules) {
        return refused(modules.error());
      }
      for (ModuleInfo& module : *modules) {
        const std::uint64_t address = module.load_address;
        modules_[address] = std::move(module);
      }
      break;
    }
    case BlockKind::markers: {
      auto markers = decode_markers(payload);
      if (!markers) {
        return refused(markers.error());
      }
      append(info.markers, std::move(*markers));
      break;
    }
    case BlockKind::resident: {
      auto samples = decode_resident(payload);
      if (!samples) {
        return refused(samples.error());
      }
      append(info.resident, std::move(*samples));
      break;
    }
    case BlockKind::gap: {
      const auto gap = decode_gap(payload);
      if (!gap) {
        return refused(gap.error());
      }
      info.gaps.push_back(*gap);
      contents_.blocks.push_back(place);
      break;
    }
    case BlockKind::watermark: {
      if (const auto mark = decode_watermark(payload); !mark) {
        return refused(mark.error());
      }
      contents_.blocks.push_back(place);
      break;
    }
    case BlockKind::footer: {
      auto footer = decode_footer(payload);
      if (!footer) {
        return refused(footer.error());
      }
      // Its index lies in the payload, which goes: who needs it decodes again.
      footer->index.data = {};
      footer_ = std::move(*footer);
      break;
    }
    case BlockKind::end:
      break;
  }
  ++info.blocks;
  return {};
}

void ContentsBuilder::take_unread(const BlockPlace& place, const IndexEntry& entry) {
  contents_.blocks.push_back(place);
  (place.kind == BlockKind::packed_events ? packed_events_ : recorded_events_) += entry.events;
  ++contents_.info.blocks;
}

// What was missing from the source is missing here.
void ContentsBuilder::add_source_damage() {
  const FooterBlock::SourceDamage& source = footer_->source_damage;
  Damage& all = damage();
  all.truncated = all.truncated || source.truncated;
  all.bad_blocks += source.bad_blocks;
  all.skipped_bytes += source.skipped_bytes;
  all.missing_blocks += source.missing_blocks;
  all.missing_events += source.missing_events;
  if (source.truncated || source.bad_blocks != 0 || source.missing_blocks != 0) {
    all.notes.emplace_back("the tape that this one was packed from was damaged or cut");
  }
}

TapeContents ContentsBuilder::finish() {
  TapeInfo& info = contents_.info;
  const bool packed = info.header.form == TapeForm::packed;
  const BlockKind alien = packed ? BlockKind::recorded_events : BlockKind::packed_events;
  if (std::erase_if(contents_.blocks, [alien](const BlockPlace& b) { return b.kind == alien; }) != 0) {
    info.damage.notes.emplace_back("blocks of events of the other form were left out");
    info.damage.bad_blocks += 1;
  }
  info.events = packed ? packed_events_ : recorded_events_;
  contents_.damaged = info.damage.any();
  if (footer_) {
    info.footer = footer_->footer;
    contents_.merged = footer_->merged;
    contents_.has_footer = true;
    if (footer_->footer.events > info.events) {
      info.damage.missing_events = std::max(info.damage.missing_events, footer_->footer.events - info.events);
      contents_.damaged = true;
    }
    add_source_damage();
  }
  for (const auto& [thread, next] : next_of_thread_) {
    threads_.try_emplace(thread, ThreadInfo{ThreadIndex{thread}, 0, 0, 0, {}});
  }
  for (auto& [index, thread] : threads_) {
    info.threads.push_back(std::move(thread));
  }
  for (auto& [address, module] : modules_) {
    info.modules.push_back(std::move(module));
  }
  return std::move(contents_);
}

}  // namespace heaptape::format
