// Asks the collector for this process's segment (recorder/ring/protocol.h).
//
// Guarantees: waits at most about twenty seconds in all, and only if a collector is there but silent;
// leaves no descriptor behind; does nothing at all when no collector is named. Signals must be blocked.
#pragma once

#include <cstdint>

#include "recorder/ring/layout.h"
#include "recorder/ring/protocol.h"

namespace heaptape::preload {

// A collector's address, kept from the start of the image on: a program may clear its environment.
struct SocketName {
  char text[ring::socket_name_max] = {};
  unsigned length = 0;
};

enum class EnvironmentStatus : std::uint8_t {
  named,
  not_named,  // nobody records: no variable, or not a usable one
  not_ready,  // the C library has not set `environ` up yet
};
[[nodiscard]] EnvironmentStatus read_environment(SocketName& name) noexcept;

enum class HandshakeStatus : std::uint8_t {
  mapped,
  unreachable,  // no descriptor, no listener, no answer
  refused,
  mismatch,  // another version, or not a segment
  no_memory,
};
[[nodiscard]] HandshakeStatus request_segment(const SocketName& name, ring::Origin origin,
                                              ring::SegmentView& segment) noexcept;

// False if nobody listens there any more; true if somebody does, or if there is no way to tell.
[[nodiscard]] bool collector_listens(const SocketName& name) noexcept;

}  // namespace heaptape::preload
