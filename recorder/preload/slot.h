// What the recorder knows of one thread, and where a hook finds it.
//
// `current` is the whole of the thread-local storage: one pointer, initial-exec. It points to a slot
// of the process's area (process.h), or to one of the marks below, whose `outer` is never zero: so a
// hook has one test to make, and everything unusual is behind it. Slots lie in memory that the kernel
// wipes in a forked child: there the writer is closed, and the next event finds the child's own
// collector. Only its own thread touches a slot, but for `ring` and `owner`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "recorder/ring/layout.h"
#include "recorder/ring/writer.h"

namespace heaptape::preload {

struct alignas(ring::cache_line_bytes) Slot {
  // First line: the hooks.
  std::uintptr_t outer = 0;                // stack pointer of the outermost hook in its call; 0: none
  const ring::Word* clock_word = nullptr;  // Control::clock_word
  std::uint64_t released = 0;              // what the outermost hook is releasing; 0: nothing
  char copies_clock = 0;                   // 1: this thread has never seen a second one, and stamps are ticks
  bool uses_tsc = false;                   // false: stamps are Control::sequence
  bool in_slow_path = false;
  std::uint8_t destructor_passes = 0;

  // Second line: the writer.
  alignas(ring::cache_line_bytes) ring::RingWriter writer{};

  // The outermost hook, told to nested ones by those hooks that commonly have some (operator new).
  alignas(ring::cache_line_bytes) ring::RawEvent outer_event{};
  bool described = false;           // outer_event is valid
  std::uint64_t nested_result = 0;  // last address that a nested hook recorded; failed_result for null
  std::uint64_t nested_calls = 0;   // absorbed by an outer hook, not yet added to Control::nested_calls
  std::uint32_t tid = 0;
  // For threads in search of a slot (process.cpp): the ring that the writer has, and 0 (free) or the thread
  // id, with `slot_pending` while `ring` is not yet right.
  std::atomic<std::uint32_t> ring = 0;
  std::atomic<std::uint32_t> owner = 0;
};
static_assert(sizeof(ring::RingWriter) == ring::cache_line_bytes);

inline constexpr std::uint32_t slot_pending = 0x80000000;
inline constexpr std::uint64_t failed_result = 1;  // no allocator returns it

// Marks: what `current` points to when there is no slot.
namespace marks {
extern const Slot unattached;  // nothing tried yet
extern const Slot attaching;   // in the recorder's own start or end of this thread
extern const Slot resolving;   // in resolve_real_functions()
extern const Slot lost;        // there was no room for this thread
extern const Slot off;         // not recording, for good
}  // namespace marks

// NOLINTNEXTLINE: `thread_local` would go through a wrapper function.
extern __thread Slot* current [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];

[[nodiscard, gnu::always_inline]] inline bool is_mark(const Slot* s) noexcept {
  return s->outer == ~std::uintptr_t{0};
}

}  // namespace heaptape::preload
