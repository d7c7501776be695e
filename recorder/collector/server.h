// The socket at which recorded programs report: an abstract unix stream socket, random name.
//
// Guarantees: never waits for a peer; a peer that says nothing, too little or nonsense costs one
// descriptor until its time is up. Peers of another user are dropped unheard, unless we are root.
// What a peer says is checked for form here; its meaning is the caller's to judge. One thread.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/descriptor.h"
#include "format/base/error.h"
#include "recorder/ring/protocol.h"

namespace heaptape::collector {

using PeerId = std::uint64_t;

struct PeerMessage {
  enum class What {
    hello,  // `hello` holds; answer with `accept` or `refuse`
    ready,  // `ready` holds; an accepted peer that hung up without it: ReadyStatus 0
  };
  What what = What::hello;
  PeerId peer = 0;
  pid_t pid = 0;  // by the kernel's word, in our pid namespace
  uid_t uid = 0;
  ring::Hello hello{};
  ring::ReadyStatus ready{};
};

class Server {
 public:
  [[nodiscard]] static format::Result<Server> open();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // "HEAPTAPE_SOCKET=name"
  [[nodiscard]] std::string environment_entry() const;

  // Descriptors to wait on for reading.
  void append_descriptors(std::vector<pollfd>& descriptors) const;
  // Takes new peers and returns what the known ones have said since the last call.
  [[nodiscard]] std::vector<PeerMessage> take_messages();

  void accept(PeerId peer, const ring::Welcome& welcome, int segment_fd);
  void refuse(PeerId peer, ring::WelcomeStatus status);

 private:
  struct Peer {
    PeerId id = 0;
    format::Descriptor socket;
    pid_t pid = 0;
    uid_t uid = 0;
    bool accepted = false;
    bool finished = false;
    std::chrono::steady_clock::time_point deadline;
  };

  Server(format::Descriptor socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}
  void take_new_peers();
  [[nodiscard]] std::optional<PeerMessage> read_from(Peer& peer);
  [[nodiscard]] Peer* find(PeerId peer);

  format::Descriptor socket_;
  std::string name_;
  std::vector<Peer> peers_;
  PeerId next_id_ = 1;
};

}  // namespace heaptape::collector
