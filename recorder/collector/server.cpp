#include "recorder/collector/server.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace heaptape::collector {

namespace {

constexpr std::size_t most_pending_peers = 256;

format::Result<std::string> random_name() {
  std::array<std::uint64_t, 2> random{};
  if (::getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    return format::system_failure("getrandom", errno);
  }
  return fmt::format("heaptape-{:016x}{:016x}", random[0], random[1]);
}

ring::Welcome refusal(ring::WelcomeStatus status) {
  ring::Welcome welcome{};
  welcome.magic = ring::protocol_magic;
  welcome.version = ring::protocol_version;
  welcome.status = status;
  return welcome;
}

void send_welcome(int socket, ring::Welcome welcome, int segment_fd) {
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (segment_fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &segment_fd, sizeof segment_fd);
  }
  // Nothing to do where it fails: the peer never gets ready then.
  [[maybe_unused]] const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

format::Result<Server> Server::open() {
  auto name = random_name();
  if (!name) {
    return format::Failure(std::move(name).error());
  }
  format::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name->copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name->size());
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return format::system_failure("the socket for recorded programs", errno);
  }
  return Server(std::move(socket), *std::move(name));
}

std::string Server::environment_entry() const { return fmt::format("{}={}", ring::socket_variable, name_); }

void Server::append_descriptors(std::vector<pollfd>& descriptors) const {
  descriptors.push_back({socket_.get(), POLLIN, 0});
  for (const Peer& peer : peers_) {
    descriptors.push_back({peer.socket.get(), POLLIN, 0});
  }
}

void Server::take_new_peers() {
  while (peers_.size() < most_pending_peers) {
    format::Descriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      return;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0 ||
        (peer.uid != ::geteuid() && ::geteuid() != 0)) {
      continue;
    }
    peers_.push_back({.id = next_id_++,
                      .socket = std::move(socket),
                      .pid = peer.pid,
                      .uid = peer.uid,
                      .deadline = std::chrono::steady_clock::now() +
                                  std::chrono::seconds(ring::handshake_timeout_seconds)});
  }
}

std::optional<PeerMessage> Server::read_from(Peer& peer) {
  PeerMessage message;
  message.what = peer.accepted ? PeerMessage::What::ready : PeerMessage::What::hello;
  message.peer = peer.id;
  message.pid = peer.pid;
  message.uid = peer.uid;
  ring::Ready ready{};
  void* const target = peer.accepted ? static_cast<void*>(&ready) : &message.hello;
  const std::size_t size = peer.accepted ? sizeof ready : sizeof message.hello;
  // Messages are far smaller than a socket buffer and sent at once: all or nothing is in it.
  const ssize_t n = ::recv(peer.socket.get(), target, size, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR) && std::chrono::steady_clock::now() < peer.deadline) {
    return std::nullopt;
  }
  const bool whole = n == static_cast<ssize_t>(size);
  if (peer.accepted) {
    peer.finished = true;
    message.ready = whole && ready.magic == ring::protocol_magic ? ready.status : ring::ReadyStatus{};
    return message;
  }
  if (!whole || message.hello.magic != ring::protocol_magic) {
    peer.finished = true;
    return std::nullopt;
  }
  if (message.hello.version != ring::protocol_version) {
    refuse(peer.id, ring::WelcomeStatus::version_mismatch);
    return std::nullopt;
  }
  return message;
}

std::vector<PeerMessage> Server::take_messages() {
  take_new_peers();
  std::vector<PeerMessage> messages;
  for (Peer& peer : peers_) {
    if (auto message = read_from(peer)) {
      messages.push_back(*message);
    }
  }
  std::erase_if(peers_, [](const Peer& peer) { return peer.finished; });
  return messages;
}

Server::Peer* Server::find(PeerId peer) {
  const auto found = std::ranges::find(peers_, peer, &Peer::id);
  return found == peers_.end() ? nullptr : &*found;
}

void Server::accept(PeerId id, const ring::Welcome& welcome, int segment_fd) {
  if (Peer* peer = find(id)) {
    send_welcome(peer->socket.get(), welcome, segment_fd);
    peer->accepted = true;
    peer->deadline = std::chrono::steady_clock::now() + std::chrono::seconds(ring::handshake_timeout_seconds);
  }
}

void Server::refuse(PeerId id, ring::WelcomeStatus status) {
  if (Peer* peer = find(id)) {
    send_welcome(peer->socket.get(), refusal(status), -1);
    peer->finished = true;
  }
}

}  // namespace heaptape::collector
