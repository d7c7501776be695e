// The hot path: how a hook records its call.
//
// A hook asks `current->outer`, calls the real function in between its marks, and writes one record
// into its thread's ring; everything else is out of line in record.cpp. Cost on the machines measured:
// see recorder/README.md. No lock, no system call, no atomic read-modify-write, errno untouched.
//
// Outermost calls only: `outer` keeps the stack pointer of the hook that is in its call. A hook below it
// is nested, one above it finds that frame left by a throw or a longjmp. A nested call is either a part of
// the outer one (malloc under operator new: same block, recorded once, by the outer's name), or foreign to
// it (a signal handler, a new-handler, an exception object), and then recorded as if there were no outer
// hook. So even a left frame that is taken for a living one loses no event.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/preload/arch.h"
#include "recorder/preload/process.h"
#include "recorder/preload/slot.h"
#include "recorder/ring/layout.h"
#include "recorder/ring/writer.h"

namespace heaptape::preload {

using ring::Call;
using ring::RawEvent;

// What a hook is to do that did not find `outer` zero.
enum class Way : std::uint8_t {
  outermost,  // record: `current` is a slot, `outer` zero
  nested,     // below another hook that is not in the middle of a write
  forward,    // do not record
};
[[nodiscard]] Way enter() noexcept;

// For events that did not go the fast way; `current` may be another slot, or a mark, afterwards.
[[gnu::cold]] void record_slowly(const RawEvent& event) noexcept;

// Nested calls: whether this one is a part of the outer call; and, behind an acquire, what became of it.
[[nodiscard]] bool is_part_of_outer(const RawEvent& event) noexcept;
void settle_part(const RawEvent& event) noexcept;

// A foreign nested call: for its duration there is no outer hook.
class Foreign {
 public:
  Foreign() noexcept;
  // `result` of an acquire may turn out to be the outer hook's; a release ends that.
  void acquired(std::uint64_t result) noexcept;
  void released(std::uint64_t address) noexcept;

 private:
  void restore() noexcept;

  std::uintptr_t outer_;
  std::uint64_t released_;
  std::uint64_t nested_result_;
  RawEvent outer_event_;
  bool described_;
};

// Ends an outermost hook, in whatever slot it is by now.
void leave_outermost() noexcept;
// As a hook leaves whose call is described in its slot: true if nested hooks have recorded its result.
[[nodiscard]] bool recorded_by_nested(std::uint64_t address) noexcept;
// As a realloc leaves: records what parts of it left to it, if that is not its result after all.
void settle_parts(const RawEvent& end) noexcept;

// What Slot::nested_result keeps of a result.
[[nodiscard, gnu::always_inline]] inline std::uint64_t result_key(std::uint64_t address) noexcept {
  return address != 0 ? address : failed_result;
}

[[nodiscard, gnu::always_inline]] inline bool copies_clock(Slot& s) noexcept {
  if ((*single_threaded.load(std::memory_order_relaxed) & s.copies_clock) != 0) {
    return true;
  }
  s.copies_clock = 0;  // never again, whatever the C library says later
  return false;
}
// After the call that acquired. Cost: nothing while the process has one thread, else rdtsc.
[[nodiscard, gnu::always_inline]] inline std::uint64_t acquire_stamp(Slot& s) noexcept {
  if (copies_clock(s)) {
    return s.clock_word->load(std::memory_order_relaxed);  // partner: the collector's store, any time
  }
  return s.uses_tsc ? arch::stamp() : sequence_stamp();
}
// Before the call that releases: not earlier than the moment at which this thread got the pointer.
[[nodiscard, gnu::always_inline]] inline std::uint64_t release_stamp(Slot& s) noexcept {
  if (copies_clock(s)) {
    return s.clock_word->load(std::memory_order_relaxed);
  }
  return s.uses_tsc ? arch::fenced_stamp() : sequence_stamp();
}

[[nodiscard, gnu::always_inline]] inline std::uint64_t address_of(const void* p) noexcept {
  return reinterpret_cast<std::uint64_t>(p);
}

// Writes a record the fast way if that is possible. Cost: RingWriter::write_fast.
[[nodiscard, gnu::always_inline]] inline bool record_fast(Slot& slot, const RawEvent& e) noexcept {
  const bool plain = e.alignment == 0 || ((e.alignment & (e.alignment - 1)) == 0 &&
                                          e.alignment <= ring::RingWriter::max_plain_alignment);
  const std::uint64_t alignment = e.alignment == 0 ? 0 : ring::RingWriter::alignment_bits(e.alignment);
  return plain && slot.writer.write_fast(ring::call_bits(e.call, e.phase) | alignment, e.address,
                                         e.size_bytes, e.stamp, e.site);
}
[[gnu::always_inline]] inline void record(Slot& slot, const RawEvent& e) noexcept {
  if (!record_fast(slot, e)) [[unlikely]] {
    record_slowly(e);
  }
}

// The body of an acquire whose real call rarely has hooks below it. Cost besides that call: about
// 4 loads, 9 stores.
template <typename RealCall>
[[gnu::always_inline]] inline void* plain_acquire(Slot* slot, RawEvent event, RealCall real_call) {
  slot->outer = arch::stack_pointer();
  void* const p = real_call();
  event.address = address_of(p);
  event.stamp = acquire_stamp(*slot);
  if (!record_fast(*slot, event)) [[unlikely]] {
    record_slowly(event);
    leave_outermost();
    return p;
  }
  slot->outer = 0;
  return p;
}

// The body of an acquire whose real call commonly has hooks below it (operator new over malloc): says what
// it is about, so that one of them records it with the name and size of this one.
template <typename RealCall>
[[gnu::always_inline]] inline void* layered_acquire(Slot* slot, RawEvent event, RealCall real_call) {
  slot->outer = arch::stack_pointer();
  slot->outer_event = event;
  slot->described = true;
  void* const p = real_call();
  if (!recorded_by_nested(address_of(p))) {
    event.address = address_of(p);
    event.stamp = acquire_stamp(*slot);
    record(*slot, event);
  }
  leave_outermost();
  return p;
}

// The body of a release: recorded before the real call. Hooks below it see from `released` that it is.
template <typename RealCall>
[[gnu::always_inline]] inline void plain_release(Slot* slot, RawEvent event, RealCall real_call) {
  slot->outer = arch::stack_pointer();
  slot->released = event.address;
  event.stamp = release_stamp(*slot);
  if (!record_fast(*slot, event)) [[unlikely]] {
    record_slowly(event);
    real_call();
    leave_outermost();
    return;
  }
  real_call();
  slot->released = 0;
  slot->outer = 0;
}

template <typename Body, typename RealCall>
[[gnu::noinline]] void* odd_acquire(RawEvent event, Body body, RealCall real_call) {
  void* p = nullptr;
  switch (enter()) {
    case Way::outermost:
      return body(current, event, real_call);
    case Way::nested:
      if (is_part_of_outer(event)) {
        p = real_call();
        event.address = address_of(p);
        settle_part(event);
      } else {
        Foreign foreign;
        p = body(current, event, real_call);
        foreign.acquired(address_of(p));
      }
      return p;
    case Way::forward:
      break;
  }
  return real_call();
}
template <typename RealCall>
[[gnu::noinline]] void odd_release(RawEvent event, RealCall real_call) {
  switch (enter()) {
    case Way::outermost:
      plain_release(current, event, real_call);
      return;
    case Way::nested:
      if (is_part_of_outer(event)) {
        real_call();
      } else {
        Foreign foreign;
        plain_release(current, event, real_call);
        foreign.released(event.address);
      }
      return;
    case Way::forward:
      break;
  }
  real_call();
}

// The three shapes of a hook.
template <typename RealCall>
[[gnu::always_inline]] inline void* hook_acquire(const RawEvent& event, RealCall real_call) {
  Slot* const slot = current;
  if (slot->outer != 0) [[unlikely]] {
    return odd_acquire(
        event, [](auto... a) { return plain_acquire(a...); }, real_call);
  }
  return plain_acquire(slot, event, real_call);
}
template <typename RealCall>
[[gnu::always_inline]] inline void* hook_layered_acquire(const RawEvent& event, RealCall real_call) {
  Slot* const slot = current;
  if (slot->outer != 0) [[unlikely]] {
    return odd_acquire(
        event, [](auto... a) { return layered_acquire(a...); }, real_call);
  }
  return layered_acquire(slot, event, real_call);
}
template <typename RealCall>
[[gnu::always_inline]] inline void hook_release(const RawEvent& event, RealCall real_call) {
  Slot* const slot = current;
  if (slot->outer != 0) [[unlikely]] {
    odd_release(event, real_call);
    return;
  }
  plain_release(slot, event, real_call);
}

}  // namespace heaptape::preload
