// All process images of one recording: who is recorded now, who was, and which file is whose.
//
// Guarantees: one tape per image and one image per tape; an image that exec replaced gives its name
// to the next and becomes `.replaced-N` (one without any event leaves no file). At the end FILE is
// the tape of the program that was meant, see `settle_names`. One thread.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/error.h"
#include "recorder/collector/notes.h"
#include "recorder/collector/program.h"
#include "recorder/collector/recording.h"
#include "recorder/collector/server.h"
#include "recorder/collector/tape_names.h"

namespace heaptape::collector {

class Recordings {
 public:
  Recordings(RecordingContext context, TapeNames names, pid_t root, bool follow, Notes& notes)
      : context_(std::make_unique<RecordingContext>(std::move(context))),
        names_(std::move(names)),
        notes_(&notes),
        root_(root),
        follow_(follow) {}

  // A peer said hello: gives it rings, or refuses it.
  void greet(Server& server, const PeerMessage& message);
  // A greeted peer has mapped them, or not.
  void ready(const PeerMessage& message);

  // Descriptors that become readable when a recorded process ends.
  void append_descriptors(std::vector<pollfd>& descriptors) const {
    for (const auto& [pid, active] : active_) {
      descriptors.push_back({active.recording->pidfd(), POLLIN, 0});
    }
  }

  struct Pass {
    std::uint64_t events = 0;
    bool busy = false;  // rings fill up: come back at once
  };
  // One pass over all.
  Pass pass();
  // Recorded processes that are gone. All they ever said to the server is there by then: take its
  // messages and make a pass before `end_gone`, since their last image may not have begun yet.
  [[nodiscard]] std::vector<pid_t> find_gone() const;
  // Ends their recordings; `end_of_root` tells how the root ended.
  void end_gone(const std::vector<pid_t>& gone,
                const std::function<std::optional<ProgramEnd>()>& end_of_root);
  // Ends those whose process went on as a program that does not report here, after some patience.
  void end_replaced(std::int64_t now_ns);
  // Ends all at once; the programs run on.
  void stop_all();

  // Where the root was a mere launcher of the program that was meant (see `is_launcher_of`), FILE
  // goes to the tape of the largest program that it started. After all have ended.
  void settle_names();

  [[nodiscard]] bool empty() const noexcept { return active_.empty() && greeted_.empty(); }
  [[nodiscard]] bool any_active() const noexcept { return !active_.empty(); }
  [[nodiscard]] bool any_begun() const noexcept { return !active_.empty() || !ended_.empty(); }
  [[nodiscard]] bool any_failed() const noexcept { return failures_ != 0; }
  [[nodiscard]] bool root_went_unrecorded() const noexcept { return root_went_unrecorded_; }
  [[nodiscard]] std::uint64_t events() const noexcept;
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  // "redis-server (pid 17), sh (pid 12)"
  [[nodiscard]] std::string active_programs() const;
  [[nodiscard]] bool knows(pid_t pid) const { return known_.contains(pid); }
  [[nodiscard]] const std::vector<TapeSummary>& ended() const noexcept { return ended_; }

 private:
  struct Active {
    std::unique_ptr<Recording> recording;
    std::int64_t changed_since_ns = 0;  // its executable is another one since then; 0: it is not
  };

  void finish(std::unique_ptr<Recording> recording, format::EndReason reason, std::int32_t value);
  void keep(const Recording& recording);
  [[nodiscard]] std::filesystem::path name_for(const Recording& recording);
  void rename(TapeSummary& tape, const std::filesystem::path& to);

  std::unique_ptr<RecordingContext> context_;  // every recording points at it
  TapeNames names_;
  Notes* notes_;
  pid_t root_;
  bool follow_;
  std::map<PeerId, std::unique_ptr<Recording>> greeted_;
  std::map<pid_t, Active> active_;
  std::map<pid_t, int> known_;  // all that ever were active or refused
  std::vector<TapeSummary> ended_;
  std::uint64_t refused_ = 0;
  std::uint64_t failures_ = 0;
  bool root_went_unrecorded_ = false;
};

// Whether FILE is better given to `started`: the root is a shell or a wrapper, and recorded less; or
// it recorded little, and not a tenth of what `started` did. A fork is no program of its own.
[[nodiscard]] bool is_launcher_of(const TapeSummary& root, const TapeSummary& started);

}  // namespace heaptape::collector
