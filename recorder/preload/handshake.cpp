#include "recorder/preload/handshake.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>

#include "recorder/preload/sys.h"

#include "recorder/preload/poison.h"

namespace heaptape::preload {
namespace {

struct Address {
  sockaddr_un un{};
  std::size_t bytes = 0;

  explicit Address(const SocketName& name) noexcept {
    un.sun_family = AF_UNIX;
    memcpy(un.sun_path + 1, name.text, name.length);  // a leading zero byte: the abstract namespace
    bytes = offsetof(sockaddr_un, sun_path) + 1 + name.length;
  }
};
static_assert(ring::socket_name_max < sizeof(sockaddr_un::sun_path));

class Socket {
 public:
  Socket() noexcept : fd_(sys::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)) {}
  ~Socket() {
    if (fd_ >= 0) {
      sys::close(fd_);
    }
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

struct Answer {
  ring::Welcome welcome{};
  int memory_fd = -1;
};

// One whole Welcome and its descriptor, if any.
bool receive_answer(int fd, Answer& answer) noexcept {
  alignas(cmsghdr) unsigned char ancillary[CMSG_SPACE(sizeof(int))] = {};
  iovec data{.iov_base = &answer.welcome, .iov_len = sizeof answer.welcome};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const long got = sys::receive(fd, &message);
  const cmsghdr* const c = message.msg_controllen >= sizeof(cmsghdr) ? CMSG_FIRSTHDR(&message) : nullptr;
  if (got > 0 && c != nullptr && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
      c->cmsg_len == CMSG_LEN(sizeof(int))) {
    memcpy(&answer.memory_fd, CMSG_DATA(c), sizeof(int));
  }
  return got == static_cast<long>(sizeof answer.welcome);
}

bool is_sound(const ring::Welcome& w) noexcept {
  return w.ring_count > 0 && w.ring_count <= ring::max_ring_count &&
         w.segment_bytes == ring::segment_bytes_for(w.ring_count);
}

ring::ReadyStatus map_segment(const Answer& answer, ring::SegmentView& segment) noexcept {
  const ring::Welcome& w = answer.welcome;
  if (answer.memory_fd < 0) {
    return ring::ReadyStatus::no_descriptor;
  }
  if (!is_sound(w)) {
    return ring::ReadyStatus::layout_mismatch;
  }
  void* const base = sys::map(w.segment_bytes, MAP_SHARED | MAP_NORESERVE, answer.memory_fd);
  if (base == nullptr) {
    return ring::ReadyStatus::map_failed;
  }
  // A forked child must not write here: it asks for a segment of its own. And half a gigabyte of rings does
  // not belong into the program's core dump.
  const ring::SegmentView view(base, w.ring_count);
  const ring::Control& c = view.control();
  if (!sys::advise(base, w.segment_bytes, MADV_DONTFORK) || c.magic != ring::segment_magic ||
      c.version != ring::layout_version || c.ring_count != w.ring_count) {
    sys::unmap(base, w.segment_bytes);
    return ring::ReadyStatus::layout_mismatch;
  }
  sys::advise(base, w.segment_bytes, MADV_DONTDUMP);
  segment = view;
  return ring::ReadyStatus::mapped;
}

HandshakeStatus status_of(ring::ReadyStatus s) noexcept {
  switch (s) {
    case ring::ReadyStatus::mapped:
      return HandshakeStatus::mapped;
    case ring::ReadyStatus::map_failed:
      return HandshakeStatus::no_memory;
    case ring::ReadyStatus::no_descriptor:
      return HandshakeStatus::unreachable;
    case ring::ReadyStatus::layout_mismatch:
      break;
  }
  return HandshakeStatus::mismatch;
}

bool set_timeouts(int fd) noexcept {
  const timeval limit{.tv_sec = ring::handshake_timeout_seconds, .tv_usec = 0};
  return sys::set_option(fd, SO_RCVTIMEO, &limit, sizeof limit) &&
         sys::set_option(fd, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace

EnvironmentStatus read_environment(SocketName& name) noexcept {
  if (environ == nullptr) {
    return EnvironmentStatus::not_ready;
  }
  constexpr std::size_t length = sizeof ring::socket_variable - 1;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const char* const text = *variable;
    if (strncmp(text, ring::socket_variable, length) != 0 || text[length] != '=') {
      continue;
    }
    const char* const value = text + length + 1;
    unsigned n = 0;
    while (n < ring::socket_name_max && value[n] != '\0') {
      name.text[n] = value[n];
      ++n;
    }
    if (n == 0 || value[n] != '\0') {
      return EnvironmentStatus::not_named;
    }
    name.length = n;
    return EnvironmentStatus::named;
  }
  return EnvironmentStatus::not_named;
}

HandshakeStatus request_segment(const SocketName& name, ring::Origin origin,
                                ring::SegmentView& segment) noexcept {
  const Socket socket;
  const Address address(name);
  if (!socket || !set_timeouts(socket.get()) || !sys::connect(socket.get(), &address.un, address.bytes)) {
    return HandshakeStatus::unreachable;
  }
  const ring::Hello hello{.magic = ring::protocol_magic,
                          .version = ring::protocol_version,
                          .origin = origin,
                          .pid = sys::process_id(),
                          .parent_pid = sys::parent_id(),
                          .tid = static_cast<std::int32_t>(sys::thread_id()),
                          .reserved = 0,
                          .address_space_limit_bytes = sys::address_space_limit_bytes()};
  Answer answer;
  if (sys::send(socket.get(), &hello, sizeof hello) != static_cast<long>(sizeof hello) ||
      !receive_answer(socket.get(), answer)) {
    if (answer.memory_fd >= 0) {
      sys::close(answer.memory_fd);
    }
    return HandshakeStatus::unreachable;
  }
  const ring::Welcome& w = answer.welcome;
  HandshakeStatus result = HandshakeStatus::mismatch;
  if (w.magic == ring::protocol_magic && w.version == ring::protocol_version) {
    if (w.status == ring::WelcomeStatus::accepted) {
      const ring::Ready ready{
          .magic = ring::protocol_magic, .status = map_segment(answer, segment), .reserved = 0};
      sys::send(socket.get(), &ready, sizeof ready);
      result = status_of(ready.status);
    } else if (w.status == ring::WelcomeStatus::refused) {
      result = HandshakeStatus::refused;
    }
  }
  if (answer.memory_fd >= 0) {
    sys::close(answer.memory_fd);
  }
  return result;
}

bool collector_listens(const SocketName& name) noexcept {
  const int fd = sys::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    return true;
  }
  const Address address(name);
  const long result = sys::raw(SYS_connect, fd, &address.un, address.bytes);
  sys::close(fd);
  return result != -ECONNREFUSED;
}

}  // namespace heaptape::preload
