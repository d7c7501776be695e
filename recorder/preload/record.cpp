#include "recorder/preload/record.h"

#include "recorder/preload/sys.h"

#include "recorder/preload/poison.h"

namespace heaptape::preload {
namespace {

using ring::Phase;
using ring::WriteStatus;

// Counted in the slot first: the shared counter costs a locked instruction.
constexpr std::uint64_t nested_calls_kept = 64;

// What a hook left behind that was left by a throw or a longjmp, perhaps out of a signal handler that had
// interrupted it in the middle of a write.
void forget_outer(Slot& slot) noexcept {
  slot.outer = 0;
  slot.released = 0;
  slot.described = false;
  slot.nested_result = 0;
  slot.in_slow_path = false;
  if (slot.writer.is_busy()) {
    slot.writer.recover();
  }
}

// A handler on an alternate signal stack is nested in what it interrupted, wherever that stack lies.
bool is_on_other_stack(std::uintptr_t sp, std::uintptr_t outer) noexcept {
  const sys::StackRange alternate = sys::alternate_stack();
  return alternate.contains(sp) && !alternate.contains(outer);
}

// Whether a nested call can be the one with which the outer one is served: same size but for rounding.
bool serves(const RawEvent& nested, const RawEvent& outer) noexcept {
  constexpr std::uint64_t rounding = 16;
  constexpr std::uint64_t page_rounding = 2 * ring::page_bytes;
  const bool pages = outer.call == Call::valloc || outer.call == Call::pvalloc;
  const std::uint64_t least = pages ? page_rounding : rounding;
  const std::uint64_t slack = outer.alignment > least ? outer.alignment : least;
  return nested.size_bytes - outer.size_bytes < slack;  // smaller ones wrap round
}

// Writes the event, whatever it takes: a slot of its own for a forked child, room.
void write(RawEvent event) noexcept {
  for (;;) {
    Slot* const slot = current;
    if (is_mark(slot)) {
      return;
    }
    switch (slot->writer.write(event)) {
      case WriteStatus::ok:
        if (slot->writer.wants_reader()) {
          wake_collector();
        }
        return;
      case WriteStatus::busy:
        count(Counter::signal_losses);
        return;
      case WriteStatus::closed:  // this process was forked from the one that had opened it
        if (!attach_thread()) {
          return;
        }
        current->in_slow_path = true;
        event.stamp = is_acquire(event.call) ? acquire_stamp(*current) : release_stamp(*current);
        break;
      case WriteStatus::full:
        switch (make_room(*slot, event.stamp)) {
          case RoomStatus::chained:
            break;
          case RoomStatus::waited:  // that took its time
            event.stamp = is_acquire(event.call) ? acquire_stamp(*slot) : release_stamp(*slot);
            break;
          case RoomStatus::none:
            slot->writer.note_dropped();
            count(Counter::dropped);
            return;
        }
        break;
    }
  }
}

}  // namespace

Way enter() noexcept {
  Slot* const slot = current;
  const std::uintptr_t sp = arch::stack_pointer();
  if (!is_mark(slot)) {
    if (sp < slot->outer || is_on_other_stack(sp, slot->outer)) {
      if (slot->in_slow_path || slot->writer.is_busy()) {
        count(Counter::signal_losses);  // only a signal handler can be here then
        return Way::forward;
      }
      return Way::nested;
    }
    forget_outer(*slot);
    return Way::outermost;
  }
  if (slot == &marks::off) {
    return Way::forward;
  }
  if (slot == &marks::attaching || slot == &marks::resolving) {
    count(Counter::own_allocations);
    return Way::forward;
  }
  if (slot == &marks::lost && !is_fresh_process()) {
    count(Counter::dropped);
    return Way::forward;
  }
  return attach_thread() ? Way::outermost : Way::forward;
}

bool is_part_of_outer(const RawEvent& event) noexcept {
  Slot& slot = *current;
  const RawEvent& outer = slot.outer_event;
  bool part = false;
  if (is_release(event.call)) {
    part = event.address == 0 || event.address == slot.released;
  } else if (is_realloc(event.call)) {
    part = slot.described && is_realloc(outer.call) && outer.address == event.address && serves(event, outer);
  } else {
    // Behind a failed attempt, malloc is operator new's next one (its new-handler found memory), but another
    // operator new is a call of its own: the first has thrown.
    const bool has_failed = slot.nested_result == failed_result;
    part = slot.described && serves(event, outer) && !(has_failed && event.call >= Call::operator_new);
  }
  if (part && ++slot.nested_calls == nested_calls_kept) {
    count(Counter::nested_calls, slot.nested_calls);
    slot.nested_calls = 0;
  }
  return part;
}

void settle_part(const RawEvent& event) noexcept {
  Slot* const slot = current;
  if (is_mark(slot) || slot->nested_result == result_key(event.address)) {
    return;  // a part of this part has recorded it
  }
  if (is_realloc(slot->outer_event.call)) {
    settle_parts({.size_bytes = event.size_bytes, .site = event.site});
    slot->nested_result = event.address;  // left to the outer hook, which records its end
    return;
  }
  RawEvent e = slot->outer_event;
  e.address = event.address;
  e.stamp = acquire_stamp(*slot);
  record(*slot, e);
  if (Slot* const now = current; !is_mark(now)) {
    now->nested_result = result_key(e.address);
  }
}

Foreign::Foreign() noexcept
    : outer_(current->outer),
      released_(current->released),
      nested_result_(current->nested_result),
      outer_event_(current->outer_event),
      described_(current->described) {
  current->outer = 0;
  current->released = 0;
  current->nested_result = 0;
  current->described = false;
}
void Foreign::acquired(std::uint64_t result) noexcept {
  // A failed attempt stays remembered over the allocations that telling it takes (exception objects).
  if (nested_result_ != failed_result) {
    nested_result_ = result_key(result);
  }
  restore();
  Slot* const slot = current;
  if (!described_ && !is_mark(slot) && slot->writer.is_open() && !slot->writer.is_busy()) {
    slot->writer.hold();  // the outer hook comes to record_slowly(), which compares the results
  }
}
void Foreign::released(std::uint64_t address) noexcept {
  if (nested_result_ == address) {
    nested_result_ = 0;  // that block is gone; its address may be the outer hook's result yet
  }
  restore();
}
void Foreign::restore() noexcept {
  if (Slot* const slot = current; !is_mark(slot)) {
    slot->outer = outer_;
    slot->released = released_;
    slot->nested_result = nested_result_;
    slot->outer_event = outer_event_;
    slot->described = described_;
  }
}

bool recorded_by_nested(std::uint64_t address) noexcept {
  Slot* const slot = current;
  if (is_mark(slot) || slot->nested_result == 0) {
    return false;
  }
  const bool same = slot->nested_result == result_key(address);
  slot->nested_result = 0;
  return same;
}

void settle_parts(const RawEvent& end) noexcept {
  Slot* const slot = current;
  if (is_mark(slot)) {
    return;
  }
  const std::uint64_t left = slot->nested_result;
  slot->nested_result = 0;
  if (left != 0 && left != failed_result && left != end.address) {
    record(*slot, {.call = Call::malloc,
                   .address = left,
                   .size_bytes = end.size_bytes,
                   .stamp = acquire_stamp(*slot),
                   .site = end.site});
  }
}

void leave_outermost() noexcept {
  Slot* const slot = current;
  if (!is_mark(slot)) {
    slot->described = false;
    slot->released = 0;
    slot->outer = 0;
  }
}

void record_slowly(const RawEvent& event) noexcept {
  Slot* const slot = current;
  if (is_mark(slot)) {
    return;
  }
  if (slot->in_slow_path || slot->writer.is_busy()) {
    count(Counter::signal_losses);
    return;
  }
  if (slot->nested_result != 0 && !slot->described) {
    const bool known = slot->nested_result == result_key(event.address) && !is_release(event.call);
    slot->nested_result = 0;
    if (known) {
      slot->nested_calls += 1;
      slot->writer.resume();
      return;
    }
  }
  slot->in_slow_path = true;
  write(event);
  slot->in_slow_path = false;
  if (Slot* const now = current; now != slot && !is_mark(now)) {
    now->in_slow_path = false;
  }
}

}  // namespace heaptape::preload
