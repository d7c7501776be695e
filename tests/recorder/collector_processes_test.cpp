// The collector against processes that shake hands as the preload does, and against some that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>
#include <functional>

#include "recorder/collector/recordings.h"
#include "recorder/collector/server.h"
#include "tests/recorder/collector_fixture.h"

namespace heaptape::collector {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

int connect_to(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0 ? fd : -1;
}

ring::Hello hello_of(ring::Origin origin) {
  ring::Hello hello{};
  hello.magic = ring::protocol_magic;
  hello.version = ring::protocol_version;
  hello.origin = origin;
  hello.pid = ::getpid();
  hello.parent_pid = ::getppid();
  hello.address_space_limit_bytes = ~std::uint64_t{0};
  return hello;
}

struct Answer {
  ring::Welcome welcome{};
  int segment_fd = -1;
};
Answer receive_welcome(int socket) {
  Answer answer;
  iovec part{&answer.welcome, sizeof answer.welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, 0) != static_cast<ssize_t>(sizeof answer.welcome)) {
    answer.welcome = {};
  }
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    std::memcpy(&answer.segment_fd, CMSG_DATA(header), sizeof answer.segment_fd);
  }
  return answer;
}

// In a child: becomes recorded and yields the segment; _exit(99) where that does not work.
ring::SegmentView become_recorded(const std::string& name, ring::Origin origin = ring::Origin::image) {
  const int socket = connect_to(name);
  const ring::Hello hello = hello_of(origin);
  ::send(socket, &hello, sizeof hello, MSG_NOSIGNAL);
  const Answer answer = receive_welcome(socket);
  if (answer.welcome.status != ring::WelcomeStatus::accepted) {
    ::_exit(99);
  }
  void* memory = ::mmap(nullptr, answer.welcome.segment_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, answer.segment_fd, 0);
  const ring::Ready ready{ring::protocol_magic, ring::ReadyStatus::mapped, 0};
  ::send(socket, &ready, sizeof ready, MSG_NOSIGNAL);
  ::close(socket);
  return {memory, answer.welcome.ring_count};
}

void write_events(const ring::SegmentView& segment, std::uint64_t seed, int count) {
  Producer producer(segment, static_cast<std::uint32_t>(::gettid()));
  RandomEvents events(seed);
  for (int i = 0; i < count; ++i) {
    producer.write(events.next());
  }
  producer.end(~std::uint64_t{0});
}

// Server and recordings as the collector's loop drives them, with a forked child as the root.
class Processes : public testing::Test {
 protected:
  // Forks the root: `body` runs in it and _exits.
  void start(const std::function<void(const std::string& socket)>& body, bool follow = true,
             const char* pattern = "run.tape") {
    root_ = ::fork();
    if (root_ == 0) {
      body(server_.name());
      ::_exit(0);
    }
    RecordingContext context;
    context.clock = format::ClockSource::sequence;
    context.stacks = format::StackMode::caller;
    recordings_ = std::make_unique<Recordings>(
        std::move(context), TapeNames::parse((folder_ / pattern).native(), 0).value(), root_, follow, notes_);
  }

  // Until the root has ended and nothing is recorded any more.
  void collect() {
    std::optional<ProgramEnd> end;
    while (!end || !recordings_->empty()) {
      const auto reap = [&] {
        int status = 0;
        if (!end && ::waitpid(root_, &status, WNOHANG) == root_) {
          end.emplace();
          end->killed = WIFSIGNALED(status);
          end->value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        }
        return end;
      };
      reap();
      const std::vector<pid_t> gone = recordings_->find_gone();
      for (const PeerMessage& message : server_.take_messages()) {
        message.what == PeerMessage::What::hello ? recordings_->greet(server_, message)
                                                 : recordings_->ready(message);
      }
      recordings_->pass();
      recordings_->end_gone(gone, reap);  // it may have ended since
    }
    recordings_->settle_names();
  }

  [[nodiscard]] const std::vector<TapeSummary>& tapes() const { return recordings_->ended(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const TapeSummary& tape : tapes()) {
      names.push_back(tape.path.filename());
    }
    return names;
  }
  [[nodiscard]] std::string printed() {
    std::fflush(out_.get());
    std::rewind(out_.get());
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), out_.get()));
    return text;
  }

  TemporaryFolder folder_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_{std::tmpfile(), std::fclose};
  Notes notes_{false, out_.get()};
  Server server_ = Server::open().value();
  std::unique_ptr<Recordings> recordings_;
  pid_t root_ = 0;
};

TEST_F(Processes, TheTapeTellsWhatRanAndHowItEnded) {
  start([](const std::string& socket) {
    write_events(become_recorded(socket), 1, 1000);
    ::_exit(42);
  });
  collect();
  ASSERT_THAT(names(), ElementsAre("run.tape"));
  const format::TapeReader reader = format::TapeReader::open(tapes()[0].path).value();
  const format::TapeInfo& info = reader.info();
  EXPECT_EQ(info.footer.reason, format::EndReason::exited);
  EXPECT_EQ(info.footer.value, 42);
  EXPECT_EQ(info.footer.events, 1000U);
  EXPECT_EQ(info.header.pid, static_cast<std::uint32_t>(root_));
  EXPECT_EQ(info.header.parent_pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(info.header.program, executable_path(::getpid()));
  EXPECT_FALSE(info.header.arguments.empty());
  EXPECT_TRUE(info.header.from_start);
  EXPECT_EQ(info.header.clock, format::ClockSource::sequence);
  EXPECT_FALSE(info.modules.empty());
  EXPECT_FALSE(info.damage.any());
  EXPECT_EQ(printed(), "");
}

TEST_F(Processes, AKilledOneSaysSoWithAllItHadPublished) {
  start([](const std::string& socket) {
    const ring::SegmentView segment = become_recorded(socket);
    Producer producer(segment, 1);
    RandomEvents events(1);
    for (int i = 0; i < 1000; ++i) {
      producer.write(events.next());
    }
    ::kill(::getpid(), SIGKILL);
  });
  collect();
  ASSERT_THAT(tapes(), SizeIs(1));
  EXPECT_EQ(tapes()[0].footer.reason, format::EndReason::killed);
  EXPECT_EQ(tapes()[0].footer.value, SIGKILL);
  EXPECT_EQ(tapes()[0].footer.events, 1000U);
}

TEST_F(Processes, ANewImageTakesTheNameOfTheOneThatItReplaced) {
  start([](const std::string& socket) {
    // What exec does to the collector: the same process shakes hands again.
    write_events(become_recorded(socket), 1, 10);
    write_events(become_recorded(socket), 2, 20);
    write_events(become_recorded(socket), 3, 30);
  });
  collect();
  EXPECT_THAT(names(), ElementsAre("run.replaced-1.tape", "run.replaced-2.tape", "run.tape"));
  for (std::size_t i = 0; i < 3; ++i) {
    const format::TapeReader reader = format::TapeReader::open(tapes()[i].path).value();
    EXPECT_EQ(reader.info().footer.events, 10 * (i + 1));
    EXPECT_EQ(reader.info().footer.reason, i == 2 ? format::EndReason::exited : format::EndReason::replaced);
  }
}

TEST_F(Processes, AReplacedImageWithoutEventsLeavesNoFile) {
  start([](const std::string& socket) {
    (void)become_recorded(socket);
    write_events(become_recorded(socket), 2, 20);
  });
  collect();
  EXPECT_THAT(names(), ElementsAre("run.tape"));
}

TEST_F(Processes, AChildHasATapeOfItsOwnThatDidNotBeginWithTheProgram) {
  start([](const std::string& socket) {
    write_events(become_recorded(socket), 1, 10);
    const pid_t child = ::fork();
    if (child == 0) {
      write_events(become_recorded(socket, ring::Origin::forked), 2, 500);
      ::_exit(7);
    }
    ::waitpid(child, nullptr, 0);
  });
  collect();
  ASSERT_THAT(tapes(), SizeIs(2));
  const TapeSummary& child = tapes()[0].root ? tapes()[1] : tapes()[0];
  EXPECT_EQ(child.path.filename(), "run." + std::to_string(child.pid) + ".tape");
  EXPECT_FALSE(format::TapeReader::open(child.path).value().info().header.from_start);
  EXPECT_EQ(child.footer.reason, format::EndReason::exited);
  EXPECT_THAT(child.footer.value, testing::AnyOf(7, -1));  // -1: an old kernel, and a quick parent
}

TEST_F(Processes, WithoutFollowingAChildIsRefused) {
  start(
      [](const std::string& socket) {
        write_events(become_recorded(socket), 1, 10);
        const pid_t child = ::fork();
        if (child == 0) {
          become_recorded(socket, ring::Origin::forked);
          ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        ::_exit(WEXITSTATUS(status));
      },
      false);
  collect();
  ASSERT_THAT(names(), ElementsAre("run.tape"));
  EXPECT_EQ(tapes()[0].footer.value, 99);
  EXPECT_EQ(recordings_->refused(), 1U);
}

TEST_F(Processes, OfAnotherVersionAreToldSoAndRunOn) {
  start([](const std::string& socket) {
    const int fd = connect_to(socket);
    ring::Hello hello = hello_of(ring::Origin::image);
    hello.version += 1;
    ::send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
    const Answer answer = receive_welcome(fd);
    ::_exit(answer.welcome.status == ring::WelcomeStatus::version_mismatch && answer.segment_fd < 0 ? 0 : 1);
  });
  collect();
  EXPECT_THAT(tapes(), IsEmpty());
}

TEST_F(Processes, ThatCannotMapTheRingsAreNamedWithTheReason) {
  start([](const std::string& socket) {
    const int fd = connect_to(socket);
    const ring::Hello hello = hello_of(ring::Origin::image);
    ::send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
    (void)receive_welcome(fd);
    const ring::Ready ready{ring::protocol_magic, ring::ReadyStatus::map_failed, 0};
    ::send(fd, &ready, sizeof ready, MSG_NOSIGNAL);
    char end = 0;
    (void)!::read(fd, &end, 1);  // the collector hangs up once it has read that
  });
  collect();
  EXPECT_THAT(tapes(), IsEmpty());
  EXPECT_TRUE(recordings_->any_failed());
  EXPECT_THAT(printed(), HasSubstr("no address space for the rings"));
}

TEST_F(Processes, ThatTalkNonsenseCostNothingAndDisturbNobody) {
  start([](const std::string& socket) {
    std::mt19937_64 random(5);
    const ring::SegmentView segment = become_recorded(socket);
    Producer producer(segment, 1);
    RandomEvents events(1);
    for (int i = 0; i < 100; ++i) {
      producer.write(events.next());
      const int fd = connect_to(socket);
      std::uint64_t garbage[16];
      for (std::uint64_t& word : garbage) {
        word = random();
      }
      ::send(fd, garbage, random() % sizeof garbage, MSG_NOSIGNAL);
      if (random() % 2 == 0) {
        ::close(fd);
      }
    }
    producer.end(~std::uint64_t{0});
  });
  collect();
  ASSERT_THAT(names(), ElementsAre("run.tape"));
  EXPECT_EQ(tapes()[0].footer.events, 100U);
}

TEST_F(Processes, AreSwitchedOffWhereTheirTapeCannotBeWritten) {
  start(
      [](const std::string& socket) {
        const ring::SegmentView segment = become_recorded(socket);
        while (segment.control().recording.load() != static_cast<std::uint32_t>(ring::Recording::stopped)) {
          ::usleep(1000);
        }
        ::_exit(3);
      },
      true, "no-such-folder/run.tape");
  collect();
  ASSERT_THAT(tapes(), SizeIs(1));
  EXPECT_EQ(tapes()[0].path, "");
  EXPECT_NE(tapes()[0].failure, "");
  EXPECT_TRUE(recordings_->any_failed());
  EXPECT_THAT(printed(), HasSubstr("the program runs on"));
}

TEST_F(Processes, AreSwitchedOffWhenTheRecordingIsStopped) {
  start([](const std::string& socket) {
    const ring::SegmentView segment = become_recorded(socket);
    write_events(segment, 1, 1000);
    while (segment.control().recording.load() != static_cast<std::uint32_t>(ring::Recording::stopped)) {
      ::usleep(1000);
    }
  });
  while (recordings_->events() < 1000) {
    for (const PeerMessage& message : server_.take_messages()) {
      message.what == PeerMessage::What::hello ? recordings_->greet(server_, message)
                                               : recordings_->ready(message);
    }
    recordings_->pass();
  }
  recordings_->stop_all();
  ::waitpid(root_, nullptr, 0);
  ASSERT_THAT(tapes(), SizeIs(1));
  const format::TapeReader reader = format::TapeReader::open(tapes()[0].path).value();
  EXPECT_EQ(reader.info().footer.reason, format::EndReason::stopped);
  EXPECT_EQ(reader.info().footer.events, 1000U);
}

TapeSummary summary_of(const char* executable, std::uint64_t events, bool root, bool forked = false) {
  TapeSummary tape;
  tape.path = "x.tape";
  tape.executable = executable;
  tape.root = root;
  tape.forked = forked;
  tape.footer.events = events;
  tape.footer.reason = format::EndReason::exited;
  return tape;
}

TEST(Launcher, AShellIsOneOfAnythingThatRecordedMore) {
  EXPECT_TRUE(is_launcher_of(summary_of("/bin/dash", 50, true), summary_of("/usr/bin/perl", 60, false)));
  EXPECT_FALSE(is_launcher_of(summary_of("/bin/dash", 50, true), summary_of("/usr/bin/perl", 50, false)));
}

TEST(Launcher, AnotherProgramIsOneOnlyOfSomethingFarLarger) {
  EXPECT_TRUE(
      is_launcher_of(summary_of("/bin/g++", 5'000, true), summary_of("/lib/cc1plus", 8'000'000, false)));
  EXPECT_FALSE(is_launcher_of(summary_of("/bin/app", 10, true), summary_of("/bin/helper", 9'000, false)));
  EXPECT_FALSE(
      is_launcher_of(summary_of("/bin/app", 19'000, true), summary_of("/bin/helper", 100'000, false)));
  EXPECT_FALSE(
      is_launcher_of(summary_of("/bin/app", 1'000'000, true), summary_of("/bin/helper", 90'000'000, false)));
}

TEST(Launcher, AForkIsNoProgramOfItsOwn) {
  EXPECT_FALSE(
      is_launcher_of(summary_of("/bin/bash", 10, true), summary_of("/bin/bash", 1'000, false, true)));
}

}  // namespace
}  // namespace heaptape::collector
