#include "tests/recorder/preload_collector.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heaptape::preload_test {
namespace {

using ring::RingRecord;
using ring::RingState;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  std::memcpy(a.sun_path + 1, name.data(), name.size());
  return {a, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

}  // namespace

RecordedProcess::RecordedProcess(const CollectorOptions& options, const ring::Hello& hello)
    : options_(options), hello_(hello) {
  const std::size_t bytes = ring::segment_bytes_for(options.rings);
  fd_ = ::memfd_create("test-segment", MFD_CLOEXEC);
  if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    give_up("memfd");
  }
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED) {
    give_up("mmap");
  }
  view_ = ring::SegmentView(base, options.rings);
  ring::Control& c = view_.control();
  c.magic = ring::segment_magic;
  c.version = ring::layout_version;
  c.ring_count = options.rings;
  c.segment_bytes = bytes;
  c.clock = options.clock;
  c.overflow = options.overflow;
  c.stacks = options.stacks;
  c.recording = static_cast<std::uint32_t>(ring::Recording::on);
  advance_clock();
  for (std::uint32_t i = 0; i < options.rings; ++i) {
    sources_.push_back(std::make_unique<Source>(ring::RingReader(view_.ring(i), options.rings)));
    if (i < options.offered) {
      view_.state(i).store(static_cast<std::uint32_t>(RingState::free), std::memory_order_release);
    }
  }
  c.ring_high.store(options.offered, std::memory_order_release);
}

RecordedProcess::~RecordedProcess() {
  ::munmap(&view_.control(), view_.control().segment_bytes);
  ::close(fd_);
}

void RecordedProcess::advance_clock() {
  view_.control().clock_word.store(__rdtsc(), std::memory_order_relaxed);
  view_.control().heartbeat.fetch_add(1, std::memory_order_relaxed);
}

void RecordedProcess::take(std::uint32_t index, const RingRecord& record) {
  Source& source = *sources_[index];
  switch (record.type) {
    case RingRecord::Type::thread_start:
      source.tid = record.value;
      break;
    case RingRecord::Type::carry_on:
      source.parked = source.tid == 0;
      break;
    case RingRecord::Type::jump:
      sources_[record.value]->tid = source.tid;
      sources_[record.value]->parked = false;
      break;
    default:
      break;
  }
  if (source.tid != 0) {
    threads_[source.tid].push_back(record);
  }
}

// At most a ring's length, while the program goes on writing.
void RecordedProcess::drain_ring(std::uint32_t index) {
  Source& source = *sources_[index];
  for (std::uint64_t n = 0; n < ring::ring_words / 2 && !source.parked; ++n) {
    RingRecord record;
    const ring::ReadResult r = source.reader.read(&record, 1);
    if (r.status == ring::ReadStatus::damaged) {
      damaged_ = true;
    }
    if (r.count == 0) {
      break;
    }
    take(index, record);
    if (r.status == ring::ReadStatus::ended) {
      source.tid = 0;
      // The state comes directly behind the last record, unless the program is killed in between.
      for (int i = 0; i < 10'000 && view_.state(index).load(std::memory_order_acquire) ==
                                        static_cast<std::uint32_t>(RingState::claimed);
           ++i) {
        std::this_thread::yield();
      }
      source.reader.release();
      if (options_.recycle) {
        view_.state(index).store(static_cast<std::uint32_t>(RingState::free), std::memory_order_release);
      }
    }
  }
  source.reader.release();
}

bool RecordedProcess::thread_exists(std::uint64_t tid) const {
  const std::string path = "/proc/" + std::to_string(hello_.pid) + "/task/" + std::to_string(tid);
  return ::access(path.c_str(), F_OK) == 0;
}

void RecordedProcess::drain() {
  for (std::uint32_t i = 0; i < options_.offered; ++i) {
    Source& source = *sources_[i];
    const bool is_ending =
        view_.state(i).load(std::memory_order_acquire) == static_cast<std::uint32_t>(RingState::ending);
    const bool is_gone = is_ending && source.tid != 0 && !thread_exists(source.tid);
    drain_ring(i);
    if (is_gone && options_.recycle) {
      source.reader.restart_at_head();
      source.reader.release();
      source.tid = 0;
      view_.state(i).store(static_cast<std::uint32_t>(RingState::free), std::memory_order_release);
    }
  }
  ring::Control& c = view_.control();
  if (c.waiting_producers.load() > 0) {
    c.room_sequence.fetch_add(1);
    ::syscall(SYS_futex, &c.room_sequence, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);
  }
}

std::vector<RingRecord> RecordedProcess::events() const {
  std::vector<RingRecord> all;
  for (const auto& [tid, stream] : threads_) {
    std::copy_if(stream.begin(), stream.end(), std::back_inserter(all),
                 [](const RingRecord& r) { return r.type == RingRecord::Type::event; });
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const RingRecord& a, const RingRecord& b) { return a.stamp < b.stamp; });
  return all;
}

TestCollector::TestCollector(const CollectorOptions& options) : options_(options) {
  static std::atomic<int> serial = 0;
  name_ = "heaptape-test-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto [address, bytes] = address_of(name_);
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      ::listen(listener_, 100) != 0) {
    give_up("listen");
  }
  thread_ = std::thread([this] { run(); });
}

TestCollector::~TestCollector() { vanish(); }

void TestCollector::vanish() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
  if (listener_ >= 0) {
    ::close(listener_);
    listener_ = -1;
  }
}

void TestCollector::run() {
  std::vector<int> unanswered;
  while (!stop_) {
    pollfd p{.fd = listener_, .events = POLLIN, .revents = 0};
    ::poll(&p, 1, 1);
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      connections_ += 1;
      if (options_.silent) {
        unanswered.push_back(fd);
      } else {
        answer(fd);
        ::close(fd);
      }
    }
    for (auto& process : processes_) {
      process->advance_clock();
      if (options_.drains) {
        process->drain();
      }
    }
  }
  for (const int fd : unanswered) {
    ::close(fd);
  }
}

void TestCollector::answer(int fd) {
  ring::Hello hello{};
  const ssize_t received = ::recv(fd, &hello, sizeof hello, MSG_WAITALL);
  if (received == 0) {
    return;  // a thread that waits for room has looked whether we are still here
  }
  if (received != sizeof hello || hello.magic != ring::protocol_magic) {
    give_up("hello");
  }
  auto process = std::make_unique<RecordedProcess>(options_, hello);
  ring::Welcome welcome{};
  welcome.magic = ring::protocol_magic;
  welcome.version = options_.version;
  welcome.status = options_.answer;
  welcome.segment_bytes = ring::segment_bytes_for(options_.rings);
  welcome.ring_count = options_.rings;
  alignas(cmsghdr) unsigned char ancillary[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&welcome, sizeof welcome};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  const bool accepted = options_.answer == ring::WelcomeStatus::accepted;
  if (accepted) {
    message.msg_control = ancillary;
    message.msg_controllen = sizeof ancillary;
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    const int memory = process->memory_fd();
    std::memcpy(CMSG_DATA(c), &memory, sizeof memory);
  }
  if (::sendmsg(fd, &message, MSG_NOSIGNAL) != sizeof welcome) {
    give_up("welcome");
  }
  ring::Ready ready{};
  if (::recv(fd, &ready, sizeof ready, MSG_WAITALL) == sizeof ready) {
    readies_.push_back(ready.status);
  }
  if (accepted) {
    processes_.push_back(std::move(process));
  }
}

std::vector<std::unique_ptr<RecordedProcess>> TestCollector::finish() {
  vanish();
  for (auto& process : processes_) {
    for (std::uint32_t pass = 0; pass <= options_.offered; ++pass) {  // chains are followed from pass to pass
      process->drain();
    }
  }
  return std::move(processes_);
}

bool GuestResult::exited_with(int code) const noexcept {
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == code;
}

std::string preload_path() { return HEAPTAPE_TEST_PRELOAD; }

GuestResult run_guest(const std::vector<std::string>& command, const std::string& socket,
                      const std::vector<std::string>& more_environment, const std::string& preload) {
  std::vector<std::string> environment = {"LD_PRELOAD=" + (preload.empty() ? preload_path() : preload),
                                          "PATH=/usr/bin:/bin"};
  if (!socket.empty()) {
    environment.push_back("HEAPTAPE_SOCKET=" + socket);
  }
  environment.insert(environment.end(), more_environment.begin(), more_environment.end());
  const auto pointers = [](const std::vector<std::string>& strings) {
    std::vector<char*> p;
    for (const std::string& s : strings) {
      p.push_back(const_cast<char*>(s.c_str()));
    }
    p.push_back(nullptr);
    return p;
  };
  std::vector<std::string> full = command;
  if (full[0].find('/') == std::string::npos) {
    full[0] = std::string(HEAPTAPE_TEST_BIN) + "/" + full[0];
  }
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) {
    give_up("pipe");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 2);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, full[0].c_str(), &actions, nullptr, pointers(full).data(),
                                   pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fds[1]);
  if (failed != 0) {
    give_up(full[0].c_str());
  }
  GuestResult result;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(pipe_fds[0], buffer, sizeof buffer)) > 0;) {
    result.output.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(pipe_fds[0]);
  ::waitpid(pid, &result.wait_status, 0);
  return result;
}

}  // namespace heaptape::preload_test
