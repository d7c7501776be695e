// The handshake between a program image and the collector: three messages on a stream socket.
//
//   program -> collector   Hello
//   collector -> program   Welcome, with the segment's memfd as SCM_RIGHTS if status is `accepted`
//   program -> collector   Ready: mapped (or not, and why)
//
// The collector listens on an abstract unix socket whose name (without the leading zero byte) is in
// the environment as HEAPTAPE_SOCKET. The program connects once per image and once in each forked
// child, and closes socket and memfd at once: nothing is left for a daemon to close or for a child
// to inherit. The end of a process is seen by pidfd, not by the socket. Anything unexpected, on
// either side, or no answer within ten seconds (a crowded machine may well need two): no recording of
// that image, and nothing else.
// The collector takes the pid from SO_PEERCRED (pid namespaces); the one in Hello is what the program
// calls itself.
#pragma once

#include <cstdint>

namespace heaptape::ring {

inline constexpr char socket_variable[] = "HEAPTAPE_SOCKET";
inline constexpr std::uint64_t protocol_magic = 0x31304c4f54505048;  // "HPPTOL01"
inline constexpr std::uint32_t protocol_version = 1;
inline constexpr unsigned handshake_timeout_seconds = 10;
inline constexpr unsigned socket_name_max = 100;

enum class Origin : std::uint32_t {
  image = 1,   // a program image has started (first start, exec, posix_spawn)
  forked = 2,  // the child of a recorded process, before any exec
};

struct Hello {
  std::uint64_t magic;
  std::uint32_t version;
  Origin origin;
  std::int32_t pid;
  std::int32_t parent_pid;
  std::int32_t tid;
  std::uint32_t reserved;
  std::uint64_t address_space_limit_bytes;  // RLIMIT_AS, UINT64_MAX: none. Ask it for no more than a part
};
static_assert(sizeof(Hello) == 40);

enum class WelcomeStatus : std::uint32_t {
  accepted = 1,
  refused = 2,           // not to be recorded (--no-follow, recording over)
  version_mismatch = 3,  // another version of protocol or layout
};

struct Welcome {
  std::uint64_t magic;
  std::uint32_t version;
  WelcomeStatus status;
  std::uint64_t segment_bytes;  // == segment_bytes_for(ring_count)
  std::uint32_t ring_count;
  std::uint32_t reserved;
};
static_assert(sizeof(Welcome) == 32);

enum class ReadyStatus : std::uint32_t {
  mapped = 1,           // recording from here on
  map_failed = 2,       // no address space for the segment
  layout_mismatch = 3,  // the segment is not what Welcome said
  no_descriptor = 4,    // the memfd did not arrive (no free descriptor in the program)
};

struct Ready {
  std::uint64_t magic;
  ReadyStatus status;
  std::uint32_t reserved;
};
static_assert(sizeof(Ready) == 16);

}  // namespace heaptape::ring
