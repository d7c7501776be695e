// What the recorder knows of this process, and how its threads come and go.
//
// The state lies in one private mapping that the kernel wipes in a forked child (MADV_WIPEONFORK):
// all zero means "a process that has not asked for its segment yet". Any thread; all functions keep
// errno, allocate nothing, and are called with `current` as described.
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/preload/slot.h"
#include "recorder/ring/layout.h"
#include "recorder/ring/writer.h"

namespace heaptape::preload {

// True while the process has one thread; points to a byte that is never true if the C library cannot tell.
// Partner of the relaxed loads: the store before the process's first thread starts to record.
extern constinit std::atomic<const volatile char*> single_threaded;

// Gives the calling thread a slot and a ring, asking the collector for the process's segment first if
// nobody has. Afterwards `current` is that slot, or a mark that says why there is none. True: recording.
// What a slot left behind by fork knows of the outermost hook goes over to the new one.
[[nodiscard]] bool attach_thread() noexcept;

// Makes room in the slot's full ring: moves on to another ring, or waits. False: no room, drop the event.
// `stamp`: of the event that does not fit. Afterwards `current` may be a mark.
enum class RoomStatus : std::uint8_t { chained, waited, none };
[[nodiscard]] RoomStatus make_room(Slot& slot, std::uint64_t stamp) noexcept;

// True in a forked child none of whose threads has asked for a segment yet (and before any has at all).
[[nodiscard]] bool is_fresh_process() noexcept;

// Wakes the collector if it sleeps.
void wake_collector() noexcept;

// A stamp from Control::sequence; 0 in a process that has no segment yet.
[[nodiscard]] std::uint64_t sequence_stamp() noexcept;

// Adds to one of the counters of ring::Control, or keeps it until there is one.
enum class Counter : std::uint8_t { own_allocations, nested_calls, signal_losses, lost_threads, dropped };
void count(Counter counter, std::uint64_t n = 1) noexcept;

}  // namespace heaptape::preload
