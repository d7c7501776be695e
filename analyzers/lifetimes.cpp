#include "analyzers/lifetimes.h"

#include <algorithm>

namespace heaptape::analyzers {

using format::Event;
using format::Kind;

namespace {

enum class Family : std::uint8_t { c, scalar, array };

constexpr Family family_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::operator_new:
    case Kind::operator_new_nothrow:
    case Kind::operator_delete:
    case Kind::operator_delete_sized:
      return Family::scalar;
    case Kind::operator_new_array:
    case Kind::operator_new_array_nothrow:
    case Kind::operator_delete_array:
    case Kind::operator_delete_array_sized:
      return Family::array;
    default:
      return Family::c;
  }
}

}  // namespace

void LifetimesAnalysis::release(const Birth& birth, const Event& e) noexcept {
  if (!is_call(e)) {
    ++lifetimes_.released_by_implication;
    return;
  }
  ++lifetimes_.released;
  lifetimes_.released_bytes += e.released_size_bytes;
  lifetimes_.calls.add(calls_ - birth.call);
  // Times of different threads may disagree by a little; no age is negative.
  lifetimes_.nanoseconds.add(e.time_ns > birth.time_ns ? static_cast<std::uint64_t>(e.time_ns) -
                                                             static_cast<std::uint64_t>(birth.time_ns)
                                                       : 0);
  lifetimes_.released_by_other_thread += birth.thread != e.thread ? 1 : 0;
  lifetimes_.mismatched += family_of(birth.kind) != family_of(e.kind) ? 1 : 0;
}

void LifetimesAnalysis::consume(std::span<const Event> events) {
  for (const Event& e : events) {
    calls_ += is_call(e) ? 1 : 0;
    if (releases(e)) {
      const Birth birth = births_[e.released_slot];
      if (acquires(e)) {  // realloc: the block lives on, wherever it is now
        lifetimes_.resized_by_other_thread += birth.thread != e.thread ? 1 : 0;
        births_[e.slot] = {birth.call, birth.time_ns, e.thread, birth.kind};
      } else {
        release(birth, e);
      }
    } else if (acquires(e)) {
      births_[e.slot] = {calls_, e.time_ns, e.thread, e.kind};
    }
  }
}

}  // namespace heaptape::analyzers
