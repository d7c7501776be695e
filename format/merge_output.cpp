#include "format/merge_output.h"

#include <algorithm>
#include <iterator>

namespace heaptape::format {

void MergeOutput::take(std::vector<Event>& out, std::size_t at_most) {
  if (taken_ == 0 && out.empty() && events_.size() <= at_most) {
    out.swap(events_);  // the caller's capacity comes back for the next events
    return;
  }
  const std::size_t count = std::min(at_most, ready());
  const auto from = events_.begin() + static_cast<std::ptrdiff_t>(taken_);
  out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(count));
  taken_ += count;
  if (taken_ == events_.size()) {
    events_.clear();
    taken_ = 0;
  }
}

Event& MergeOutput::append(const Caller& caller, Kind kind, std::uint64_t stamp) {
  Event& event = events_.emplace_back();
  event.index = next_index_++;
  event.time_ns = timeline_.time_ns(stamp);
  event.thread = caller.thread;
  event.kind = kind;
  return event;
}

Event& MergeOutput::append(const Caller& caller, const RecordedEvent& e) {
  Event& event = append(caller, e.kind, e.stamp);
  event.site = e.site;
  event.alignment = e.alignment;
  ++report.events;
  return event;
}

void MergeOutput::note_repair(Event& event) {
  event.set(EventFlag::repaired);
  ++report.repairs;
}

void MergeOutput::note_unknown(Event& event, std::uint64_t stamp) {
  event.set(EventFlag::unknown_release);
  if (stamp >= damaged_from_) {
    event.set(EventFlag::cut);
    ++report.implied_by_damage;
  } else {
    ++report.unknown_releases;
  }
}

// The slot is held; its new object gets the next number.
void MergeOutput::give_birth(Event& event, SlotIndex slot, std::uint64_t stamp, const Caller& caller) {
  const auto place = static_cast<std::size_t>(slot);
  if (place >= objects_.size()) {
    objects_.resize(slots_.slots());
  }
  event.object = ObjectId{++last_object_};
  event.slot = slot;
  objects_[place] = {event.object, event.size_bytes, {stamp, caller.stream}};
}

void MergeOutput::put_aside(std::uint64_t address, AddressTable::Claim& claim) {
  aside_[address].push_back(*claim.slot);
  claim.fresh = true;
}

SlotIndex MergeOutput::vacate(std::uint64_t address) {
  const SlotIndex slot = addresses_.release(address);
  if (!aside_.empty() && slot != SlotIndex::none) {
    if (const auto it = aside_.find(address); it != aside_.end()) {
      *addresses_.claim(address).slot = it->second.back();
      it->second.pop_back();
      if (it->second.empty()) {
        aside_.erase(it);
      }
    }
  }
  return slot;
}

void MergeOutput::imply_release(const Caller& caller, std::uint64_t stamp, std::uint64_t address,
                                SlotIndex slot) {
  Event& event = append(caller, Kind::free, stamp);
  event.address = event.released_address = address;
  const Object& object = objects_[static_cast<std::size_t>(slot)];
  event.released = object.id;
  event.released_size_bytes = object.size_bytes;
  event.released_slot = slot;
  event.set(EventFlag::implied);
  if (stamp >= damaged_from_) {
    event.set(EventFlag::cut);
    ++report.implied_by_damage;
  } else {
    ++report.contradictions;
  }
  slots_.release(slot);
}

void MergeOutput::failed(const Caller& caller, const RecordedEvent& e) {
  Event& event = append(caller, e);
  event.size_bytes = e.size_bytes;
  event.set(EventFlag::failed);
}

void MergeOutput::null_release(const Caller& caller, const RecordedEvent& e) {
  append(caller, e).set(EventFlag::null_argument);
}

void MergeOutput::trimmed(const Caller& caller, const RecordedEvent& e) { append(caller, e); }

void MergeOutput::acquired(const Caller& caller, const RecordedEvent& e, AddressTable::Claim claim,
                           bool repaired) {
  if (!claim.fresh) {
    imply_release(caller, e.stamp, e.address, *claim.slot);
  }
  const SlotIndex slot = slots_.acquire();
  *claim.slot = slot;
  Event& event = append(caller, e);
  event.address = e.address;
  event.size_bytes = e.size_bytes;
  give_birth(event, slot, e.stamp, caller);
  if (repaired) {
    note_repair(event);
  }
}

void MergeOutput::released(const Caller& caller, const RecordedEvent& e, bool repaired) {
  const SlotIndex slot = vacate(e.address);
  Event& event = append(caller, e);
  event.address = event.released_address = e.address;
  if (slot == SlotIndex::none) {
    note_unknown(event, e.stamp);
    return;
  }
  const Object& object = objects_[static_cast<std::size_t>(slot)];
  event.released = object.id;
  event.released_size_bytes = object.size_bytes;
  event.released_slot = slot;
  slots_.release(slot);
  if (repaired) {
    note_repair(event);
  }
}

OpenRealloc MergeOutput::begun(const RecordedEvent& e, bool repaired) {
  OpenRealloc open;
  open.old_address = e.address;
  open.size_bytes = e.size_bytes;
  open.alignment = e.alignment;
  open.stamp = e.stamp;
  open.site = e.site;
  open.kind = e.kind;
  open.slot = e.address == 0 ? SlotIndex::none : vacate(e.address);
  if (open.slot != SlotIndex::none) {
    const Object& object = objects_[static_cast<std::size_t>(open.slot)];
    open.object = object.id;
    open.old_size_bytes = object.size_bytes;
    open.repaired = repaired;
  }
  return open;
}

// The part of a realloc's event that tells what it took its memory from.
void MergeOutput::take_from(Event& event, const OpenRealloc& open, std::uint64_t stamp) {
  event.released_address = open.old_address;
  if (open.object != ObjectId::none) {
    event.released = open.object;
    event.released_size_bytes = open.old_size_bytes;
    event.released_slot = open.slot;
  } else if (open.old_address == 0 && !open.begin_lost) {
    event.set(EventFlag::null_argument);
  } else {
    note_unknown(event, stamp);
  }
}

void MergeOutput::moved(const Caller& caller, const RecordedEvent& e, const OpenRealloc& open,
                        AddressTable::Claim claim, bool repaired) {
  if (!claim.fresh) {
    imply_release(caller, e.stamp, e.address, *claim.slot);
  }
  const SlotIndex slot = open.object != ObjectId::none ? open.slot : slots_.acquire();
  *claim.slot = slot;
  Event& event = append(caller, e);
  event.address = e.address;
  event.size_bytes = e.size_bytes;
  take_from(event, open, e.stamp);
  give_birth(event, slot, e.stamp, caller);
  if (e.address == open.old_address) {
    event.set(EventFlag::in_place);
  }
  if (repaired || open.repaired) {
    note_repair(event);
  }
}

void MergeOutput::freed(const Caller& caller, const RecordedEvent& e, const OpenRealloc& open) {
  Event& event = append(caller, e);
  event.size_bytes = e.size_bytes;
  if (open.old_address == 0 && !open.begin_lost) {  // realloc(NULL, n) that returned null
    event.set(EventFlag::null_argument);
    event.set(EventFlag::failed);
    return;
  }
  take_from(event, open, e.stamp);
  event.set(EventFlag::freeing_realloc);
  if (open.object != ObjectId::none) {
    slots_.release(open.slot);
  }
  if (open.repaired) {
    note_repair(event);
  }
}

void MergeOutput::unmoved(const Caller& caller, const RecordedEvent& e, const OpenRealloc& open,
                          const AddressTable::Claim* claim, bool repaired) {
  if (claim != nullptr) {
    if (!claim->fresh) {
      imply_release(caller, e.stamp, open.old_address, *claim->slot);
    }
    *claim->slot = open.slot;
  }
  Event& event = append(caller, e);
  event.size_bytes = e.size_bytes;
  event.released_address = open.old_address;
  event.set(EventFlag::failed);
  if (open.old_address == 0 && !open.begin_lost) {
    event.set(EventFlag::null_argument);
  }
  if (repaired || open.repaired) {
    note_repair(event);
  }
}

void MergeOutput::unfinished(const Caller& caller, const OpenRealloc& open) {
  // The object lives on; at its old address, unless somebody else has that by now.
  if (open.object != ObjectId::none) {
    if (const AddressTable::Claim claim = addresses_.claim(open.old_address); claim.fresh) {
      *claim.slot = open.slot;
    }
  }
  Event& event = append(caller, open.kind, open.stamp);
  ++report.events;
  event.site = open.site;
  event.alignment = open.alignment;
  event.size_bytes = open.size_bytes;
  event.released_address = open.old_address;
  event.set(EventFlag::unfinished);
  if (open.old_address == 0) {
    event.set(EventFlag::null_argument);
  }
  if (open.repaired) {
    note_repair(event);
  }
  ++report.open_reallocs;
}

}  // namespace heaptape::format
