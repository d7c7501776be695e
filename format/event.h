// The two forms of an event: as a thread recorded it, and as everybody reads it.
//
// RecordedEvent: one entry of one thread's stream, in that thread's exact order. A realloc is two
// entries (begin and end), because the old address may be taken by another thread in between.
// Event: one allocator call in the one merged order, with objects and slots resolved, so that no
// consumer needs a hash table. Plain data, no ownership; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace heaptape::format {

enum class ThreadIndex : std::uint32_t {};         // 0, 1, ... in order of each thread's first event
enum class ObjectId : std::uint64_t { none = 0 };  // 1, 2, ... in merged order of birth
// A place for one live object. The place freed last is reused first, so
// arrays indexed by slot are as long as the largest number of simultaneously live objects.
enum class SlotIndex : std::uint32_t { none = std::numeric_limits<std::uint32_t>::max() };
// Who called: 0 = not recorded; otherwise a return address (--stacks=caller).
enum class SiteId : std::uint64_t { none = 0 };

// The values are part of the tape format: never renumber, only append.
enum class Kind : std::uint8_t {
  // acquire memory
  malloc = 1,
  calloc = 2,
  posix_memalign = 3,
  aligned_alloc = 4,
  memalign = 5,
  valloc = 6,
  pvalloc = 7,
  operator_new = 8,  // alignment != 0: the aligned form, also for those below
  operator_new_array = 9,
  operator_new_nothrow = 10,
  operator_new_array_nothrow = 11,
  // resize; in a thread's stream as begin + end, see RecordKind
  realloc = 16,
  reallocarray = 17,
  // release memory
  free = 32,
  cfree = 33,
  free_sized = 34,
  free_aligned_sized = 35,
  operator_delete = 36,  // nothrow forms too; alignment != 0: the aligned form
  operator_delete_array = 37,
  operator_delete_sized = 38,
  operator_delete_array_sized = 39,
  // neither
  malloc_trim = 48,
};

[[nodiscard]] constexpr bool is_acquire(Kind k) noexcept {
  return k >= Kind::malloc && k <= Kind::operator_new_array_nothrow;
}
[[nodiscard]] constexpr bool is_realloc(Kind k) noexcept {
  return k == Kind::realloc || k == Kind::reallocarray;
}
[[nodiscard]] constexpr bool is_release(Kind k) noexcept {
  return k >= Kind::free && k <= Kind::operator_delete_array_sized;
}
[[nodiscard]] constexpr bool is_known(Kind k) noexcept {
  return is_acquire(k) || is_realloc(k) || is_release(k) || k == Kind::malloc_trim;
}
// "malloc", "operator new[]", ... ; "unknown" for a value outside the list.
[[nodiscard]] std::string_view kind_name(Kind k) noexcept;
// "malloc", "operator_new_array", ...: the name used in JSON.
[[nodiscard]] std::string_view kind_key(Kind k) noexcept;

// Which part of a call a RecordedEvent tells.
enum class Phase : std::uint8_t {
  whole = 0,   // everything but realloc
  begin = 1,   // realloc: address = the old one (0: none), size = the requested new size
  end = 2,     // realloc: address = the new one; size as in begin
  failed = 3,  // realloc: null result, the old block lives on (address 0). realloc(p, 0) that
               // returned null *and freed* is not failed: it is `end` with address 0
};

struct RecordedEvent {
  std::uint64_t stamp = 0;       // ticks of the recording's clock, never decreasing in one thread
  std::uint64_t address = 0;     // result of an acquire (0: failed call), argument of a release
  std::uint64_t size_bytes = 0;  // exact requested size; sized delete: the size given; else 0
  std::uint64_t alignment = 0;   // as asked for; 0: none asked for
  SiteId site = SiteId::none;
  Kind kind = Kind::malloc;
  Phase phase = Phase::whole;

  friend bool operator==(const RecordedEvent&, const RecordedEvent&) = default;
};

// Facts about one merged event; bits, part of the packed form: never renumber.
enum class EventFlag : std::uint16_t {
  failed = 1 << 0,           // null result; nothing was acquired (realloc: nothing was released)
  null_argument = 1 << 1,    // free(NULL), or realloc(NULL, n)
  unknown_release = 1 << 2,  // the address was not live: born before the recording, or an event is lost
  implied = 1 << 3,          // not recorded: a release that must have happened (contradiction)
  repaired = 1 << 4,         // held back by the merge behind the release or acquire it must follow
  in_place = 1 << 5,         // realloc that returned its argument
  freeing_realloc = 1 << 6,  // realloc(p, 0) that returned null and freed p
  unfinished = 1 << 7,       // realloc that had begun when the program died; the old object lives on
  cut = 1 << 8,              // `implied` or `unknown_release` because the tape is damaged or cut there
};

struct Event {
  std::uint64_t index = 0;             // position in the merged order, from 0
  std::int64_t time_ns = 0;            // since the recording began
  std::uint64_t address = 0;           // what was acquired; releases: what was released; 0: null or not kept
  std::uint64_t released_address = 0;  // what was released (realloc: the old address); else 0
  std::uint64_t size_bytes = 0;        // requested size of an acquire or realloc
  std::uint64_t released_size_bytes = 0;  // requested size of the released object; 0 if unknown
  std::uint64_t alignment = 0;
  ObjectId object = ObjectId::none;    // acquired object (a realloc yields a new one)
  ObjectId released = ObjectId::none;  // released object
  SiteId site = SiteId::none;
  SlotIndex slot = SlotIndex::none;           // of `object`
  SlotIndex released_slot = SlotIndex::none;  // of `released`; a realloc keeps its slot
  ThreadIndex thread{};
  Kind kind = Kind::malloc;
  std::uint16_t flags = 0;

  [[nodiscard]] constexpr bool has(EventFlag f) const noexcept {
    return (flags & static_cast<std::uint16_t>(f)) != 0;
  }
  constexpr void set(EventFlag f) noexcept {
    flags = static_cast<std::uint16_t>(flags | static_cast<std::uint16_t>(f));
  }
  friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace heaptape::format
