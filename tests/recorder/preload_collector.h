// A collector of the smallest kind, for tests of the preload: makes segments, answers the handshake,
// follows every thread's records over its rings. Trusts its guests to be those of the tests.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "recorder/ring/layout.h"
#include "recorder/ring/protocol.h"
#include "recorder/ring/reader.h"

namespace heaptape::preload_test {

struct CollectorOptions {
  ring::ClockSource clock = ring::ClockSource::tsc;
  ring::Overflow overflow = ring::Overflow::block;
  ring::Stacks stacks = ring::Stacks::none;
  std::uint32_t rings = 64;
  std::uint32_t offered = 64;  // rings that are ever free
  bool recycle = true;         // offer drained rings again
  bool drains = true;          // false: read nothing before the end
  ring::WelcomeStatus answer = ring::WelcomeStatus::accepted;
  std::uint32_t version = ring::protocol_version;  // of the Welcome
  bool silent = false;                             // accept, never answer
};

// The records of one thread id, control records included, in order.
using Stream = std::vector<ring::RingRecord>;

// One process image as it was recorded.
class RecordedProcess {
 public:
  RecordedProcess(const CollectorOptions& options, const ring::Hello& hello);
  ~RecordedProcess();
  RecordedProcess(const RecordedProcess&) = delete;
  RecordedProcess& operator=(const RecordedProcess&) = delete;

  [[nodiscard]] int memory_fd() const noexcept { return fd_; }
  [[nodiscard]] const ring::Hello& hello() const noexcept { return hello_; }
  [[nodiscard]] const ring::Control& control() const noexcept { return view_.control(); }
  [[nodiscard]] const ring::SegmentView& view() const noexcept { return view_; }
  [[nodiscard]] const std::map<std::uint64_t, Stream>& threads() const noexcept { return threads_; }
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }
  // Events of all threads, by stamp; those of one thread stay in order.
  [[nodiscard]] std::vector<ring::RingRecord> events() const;

  void drain();
  void advance_clock();

 private:
  struct Source {
    explicit Source(ring::RingReader r) : reader(r) {}
    ring::RingReader reader;
    std::uint64_t tid = 0;  // 0: nobody's yet
    bool parked = false;    // carries on a thread whose jump has not been read yet
  };
  void drain_ring(std::uint32_t index);
  [[nodiscard]] bool thread_exists(std::uint64_t tid) const;
  void take(std::uint32_t index, const ring::RingRecord& record);

  CollectorOptions options_;
  ring::Hello hello_;
  int fd_ = -1;
  ring::SegmentView view_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::map<std::uint64_t, Stream> threads_;
  bool damaged_ = false;
};

class TestCollector {
 public:
  explicit TestCollector(const CollectorOptions& options = {});
  ~TestCollector();
  TestCollector(const TestCollector&) = delete;
  TestCollector& operator=(const TestCollector&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // Reads everything that is left and returns the processes in the order of their connections.
  std::vector<std::unique_ptr<RecordedProcess>> finish();
  [[nodiscard]] int connections() const noexcept { return connections_.load(); }
  [[nodiscard]] std::vector<ring::ReadyStatus> readies() const { return readies_; }
  // Ends it as SIGKILL would: no listener, no further pass.
  void vanish();

 private:
  void run();
  void answer(int fd);

  CollectorOptions options_;
  std::string name_;
  int listener_ = -1;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connections_ = 0;
  std::vector<ring::ReadyStatus> readies_;
  std::vector<std::unique_ptr<RecordedProcess>> processes_;
  std::thread thread_;
};

struct GuestResult {
  int wait_status = -1;
  std::string output;  // stdout and stderr

  [[nodiscard]] bool exited_with(int code) const noexcept;
};
// Runs a program of the build's bin directory under the preload; socket: HEAPTAPE_SOCKET, or unset if empty.
GuestResult run_guest(const std::vector<std::string>& command, const std::string& socket,
                      const std::vector<std::string>& more_environment = {}, const std::string& preload = "");
[[nodiscard]] std::string preload_path();

}  // namespace heaptape::preload_test
