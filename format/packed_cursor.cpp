#include <algorithm>
#include <limits>
#include <vector>

#include "format/block_reader.h"
#include "format/cursors.h"
#include "format/object_slots.h"
#include "format/slots.h"

namespace heaptape::format {
namespace {

constexpr std::size_t batch_events = 2048;

// What objects are called on the tape is not what they are called here: after a loss their numbers
// go on without a hole, like the events'.
class PackedCursor final : public EventCursor {
 public:
  PackedCursor(const InputFile& file, const TapeContents& contents)
      : contents_(contents),
        blocks_(file),
        decoder_(contents.info.header.keeps_addresses),
        batch_(batch_events) {}

  [[nodiscard]] Result<std::span<const Event>> next() override {
    while (true) {
      const auto count = decoder_.next(batch_);
      if (!count) {
        return blocks_.located(contents_.blocks[next_ - 1], count.error());
      }
      if (*count != 0) {
        const std::span<Event> events = std::span(batch_).first(*count);
        for (Event& event : events) {
          if (auto resolved = resolve(event); !resolved) {
            return blocks_.located(contents_.blocks[next_ - 1], resolved.error());
          }
        }
        return std::span<const Event>(events);
      }
      if (next_ == contents_.blocks.size()) {
        complete_report();
        return std::span<const Event>{};
      }
      HEAPTAPE_TRY(start_block(contents_.blocks[next_++]));
    }
  }

  [[nodiscard]] const MergeReport& report() const noexcept override { return report_; }
  [[nodiscard]] std::uint32_t slots() const noexcept override { return slots_.slots(); }
  [[nodiscard]] double progress() const noexcept override {
    return contents_.blocks.empty()
               ? 1.0
               : static_cast<double>(next_) / static_cast<double>(contents_.blocks.size());
  }

 private:
  struct Object {
    ObjectId id = ObjectId::none;
    std::uint64_t size_bytes = 0;
    std::uint64_t address = 0;
  };

  Result<void> start_block(const BlockPlace& place) {
    if (place.kind != BlockKind::packed_events) {
      return {};  // gaps: the merge has seen them
    }
    loss_ = loss_ || place.after_loss;
    const auto block = blocks_.read_packed(place, decoder_);
    if (!block) {
      return Failure(block.error());
    }
    if (loss_ ? block->first_object < next_object_ : block->first_object != next_object_) {
      return blocks_.located(place, Error(ExitCode::bad_tape, "its objects are not those that come next"));
    }
    next_object_ = block->first_object;
    return {};
  }

  Result<void> resolve(Event& e) {
    e.index = next_index_++;
    last_time_ns_ = e.time_ns = std::max(e.time_ns, last_time_ns_);
    SlotIndex slot = SlotIndex::none;
    if (e.released != ObjectId::none) {
      slot = live_.release(static_cast<std::uint64_t>(e.released));
      if (slot == SlotIndex::none) {
        if (!loss_) {
          return failure(ExitCode::bad_tape, "event {} releases an object that is not live", e.index);
        }
        e.released = ObjectId::none;
        e.set(EventFlag::unknown_release);
        e.set(EventFlag::cut);
      } else {
        const Object& object = objects_[static_cast<std::size_t>(slot)];
        e.released = object.id;
        e.released_size_bytes = object.size_bytes;
        e.released_address = object.address;
        e.released_slot = slot;
      }
    }
    if (yields_object(e)) {
      HEAPTAPE_TRY(give_birth(e, slot));
    } else {
      if (slot != SlotIndex::none) {
        slots_.release(slot);
      }
      if (is_release(e.kind) || e.has(EventFlag::implied)) {
        e.address = e.released_address;
      }
    }
    count(e);
    return {};
  }

  Result<void> give_birth(Event& e, SlotIndex slot) {
    if (slot == SlotIndex::none) {
      slot = slots_.acquire();
      if (slot == SlotIndex::none) {
        return failure(ExitCode::bad_tape, "more than 2^32 objects are live at event {}", e.index);
      }
    }
    live_.born(static_cast<std::uint64_t>(e.object), slot);
    next_object_ = static_cast<std::uint64_t>(e.object) + 1;
    e.object = ObjectId{++births_};
    e.slot = slot;
    if (static_cast<std::size_t>(slot) >= objects_.size()) {
      objects_.resize(slots_.slots());
    }
    objects_[static_cast<std::size_t>(slot)] = {e.object, e.size_bytes, e.address};
    return {};
  }

  // The merge's report, as far as the events' own flags tell it.
  void count(const Event& e) noexcept {
    const bool implied = e.has(EventFlag::implied);
    const bool unknown = e.has(EventFlag::unknown_release);
    const bool cut = e.has(EventFlag::cut);
    report_.events += implied ? 0 : 1;
    report_.contradictions += implied && !cut ? 1 : 0;
    report_.unknown_releases += unknown && !cut ? 1 : 0;
    report_.implied_by_damage += cut ? 1 : 0;
    report_.repairs += e.has(EventFlag::repaired) ? 1 : 0;
    report_.open_reallocs += e.has(EventFlag::unfinished) ? 1 : 0;
  }

  void complete_report() {
    if (complete_) {
      return;
    }
    complete_ = true;
    if (contents_.merged && !contents_.damaged) {
      report_ = *contents_.merged;
      return;
    }
    report_.gaps = contents_.info.gaps.size();
    for (const Gap& gap : contents_.info.gaps) {
      report_.lost_events += gap.lost_events;
    }
    report_.lost_events += contents_.info.damage.missing_events;
    report_.late_events = contents_.merged ? contents_.merged->late_events : 0;
  }

  const TapeContents& contents_;
  BlockReader blocks_;
  PackedDecoder decoder_;
  std::vector<Event> batch_;
  ObjectSlots live_;             // by the tape's numbers
  std::vector<Object> objects_;  // by slot
  SlotAllocator slots_;
  MergeReport report_;
  std::size_t next_ = 0;
  std::uint64_t next_index_ = 0;
  std::uint64_t next_object_ = 1;  // on the tape
  std::uint64_t births_ = 0;
  std::int64_t last_time_ns_ = std::numeric_limits<std::int64_t>::min();
  bool loss_ = false;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<EventCursor> make_packed_cursor(const InputFile& file, const TapeContents& contents) {
  return std::make_unique<PackedCursor>(file, contents);
}

}  // namespace heaptape::format
