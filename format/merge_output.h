// What has been merged: live objects and their slots, and the events in final order.
//
// Guarantees: whatever it is told, an object is acquired once and released at most once, object
// numbers follow birth, slots follow SlotAllocator, times never decrease, and the report counts
// what the events' flags say. The caller decides the order and whether an event may go ahead.
// Internal to the merge.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "format/cursor.h"
#include "format/event.h"
#include "format/merge_stream.h"
#include "format/merge_table.h"
#include "format/merge_time.h"
#include "format/slots.h"
#include "format/tape.h"

namespace heaptape::format {

class MergeOutput {
 public:
  explicit MergeOutput(const TapeHeader& header) : timeline_(header) {}

  // From that stamp on implied and unknown releases are put down to missing events.
  void damaged_from(std::uint64_t stamp) noexcept { damaged_from_ = std::min(damaged_from_, stamp); }

  void mark(const Watermark& mark) { timeline_.mark(mark.tick, mark.time_ns); }

  MergeReport report;

  // The address table; a claim goes to one of the functions below before the next one is made.
  [[nodiscard]] AddressTable::Claim claim(std::uint64_t address) { return addresses_.claim(address); }
  [[nodiscard]] bool live(std::uint64_t address) const noexcept { return addresses_.contains(address); }
  void prefetch(std::uint64_t address) const noexcept { addresses_.prefetch(address); }

  // When and by which stream the object in the slot was acquired.
  [[nodiscard]] Birth born(SlotIndex slot) const noexcept {
    return objects_[static_cast<std::size_t>(slot)].birth;
  }
  // Makes the claim fresh; the object that was there comes back when the next one is released.
  void put_aside(std::uint64_t address, AddressTable::Claim& claim);

  // Calls that neither acquire nor release.
  void failed(const Caller& caller, const RecordedEvent& e);
  void null_release(const Caller& caller, const RecordedEvent& e);
  void trimmed(const Caller& caller, const RecordedEvent& e);

  // A claim that is not fresh says that a release is missing: it is implied first.
  void acquired(const Caller& caller, const RecordedEvent& e, AddressTable::Claim claim, bool repaired);
  void released(const Caller& caller, const RecordedEvent& e, bool repaired);

  // The old address leaves the table, the object stays.
  [[nodiscard]] OpenRealloc begun(const RecordedEvent& e, bool repaired);
  // `end` with an address, claimed; with address 0; `failed`, with the old address claimed if there is
  // an object to give it back to; and what never ended.
  void moved(const Caller& caller, const RecordedEvent& e, const OpenRealloc& open, AddressTable::Claim claim,
             bool repaired);
  void freed(const Caller& caller, const RecordedEvent& e, const OpenRealloc& open);
  void unmoved(const Caller& caller, const RecordedEvent& e, const OpenRealloc& open,
               const AddressTable::Claim* claim, bool repaired);
  void unfinished(const Caller& caller, const OpenRealloc& open);

  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_.slots(); }
  [[nodiscard]] std::size_t ready() const noexcept { return events_.size() - taken_; }
  // Moves up to `at_most` events to the end of `out`.
  void take(std::vector<Event>& out, std::size_t at_most);

 private:
  struct Object {
    ObjectId id = ObjectId::none;
    std::uint64_t size_bytes = 0;
    Birth birth;
  };

  Event& append(const Caller& caller, Kind kind, std::uint64_t stamp);
  Event& append(const Caller& caller, const RecordedEvent& e);
  void imply_release(const Caller& caller, std::uint64_t stamp, std::uint64_t address, SlotIndex slot);
  void note_repair(Event& event);
  void note_unknown(Event& event, std::uint64_t stamp);
  void give_birth(Event& event, SlotIndex slot, std::uint64_t stamp, const Caller& caller);
  SlotIndex vacate(std::uint64_t address);
  void take_from(Event& event, const OpenRealloc& open, std::uint64_t stamp);

  MergeTimeline timeline_;
  AddressTable addresses_;
  std::unordered_map<std::uint64_t, std::vector<SlotIndex>> aside_;  // by address, latest last
  SlotAllocator slots_;
  std::vector<Object> objects_;  // by slot
  std::uint64_t next_index_ = 0;
  std::uint64_t last_object_ = 0;
  std::uint64_t damaged_from_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<Event> events_;
  std::size_t taken_ = 0;
};

}  // namespace heaptape::format
