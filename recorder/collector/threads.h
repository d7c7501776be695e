// The threads of one recorded process: which tape index each has, its life, its name.
//
// Guarantees: indices count from 0 in the order of `start`. A thread that ended and writes again at
// once (events of its last clean-up, after its ring was given back) keeps its index; a later thread
// with the same number is another one. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/tape.h"

namespace heaptape::collector {

class Threads {
 public:
  // `now_ns`: the collector's time, to tell a late event from a new thread with an old number.
  [[nodiscard]] format::ThreadIndex start(std::uint32_t tid, std::uint64_t tick, std::int64_t now_ns);
  void end(format::ThreadIndex thread, std::uint64_t tick, std::int64_t now_ns);

  // Reads the names of threads that live (tids as /proc/PID/task has them); changed ones become
  // `unsaved`.
  void read_names(pid_t pid);
  // Threads that are new or changed since the last call.
  [[nodiscard]] std::vector<format::ThreadInfo> take_unsaved();

  [[nodiscard]] std::uint64_t count() const noexcept { return threads_.size(); }
  [[nodiscard]] std::uint32_t tid(format::ThreadIndex thread) const {
    return threads_[static_cast<std::size_t>(thread)].info.tid;
  }

 private:
  struct Entry {
    format::ThreadInfo info;
    std::int64_t ended_ns = 0;  // 0: lives
    bool unsaved = true;
  };
  void mark(std::size_t index);

  std::vector<Entry> threads_;
  std::vector<std::size_t> unsaved_;
  std::vector<std::size_t> living_;
  std::unordered_map<std::uint32_t, std::size_t> by_tid_;  // the last thread of each number
};

}  // namespace heaptape::collector
