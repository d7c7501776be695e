// `heaptape record` as its user sees it: exit codes, messages, signals, files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "recorder/collector/proc.h"
#include "tests/recorder/collector_fixture.h"

namespace heaptape::collector {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class RecordCommand : public testing::Test {
 protected:
  RecordCommand() { fs::create_directory(tapes()); }

  [[nodiscard]] fs::path tapes() const { return folder_ / "tapes"; }
  [[nodiscard]] fs::path file(const char* name) const { return folder_ / name; }
  [[nodiscard]] std::string tape(const char* name = "run.tape") const { return tapes() / name; }

  // `heaptape record ...`, in the background; its output to files.
  pid_t start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {HEAPTAPE_TEST_PROGRAM, "record"});
    std::vector<char*> argv;
    for (std::string& a : arguments) {
      argv.push_back(a.data());
    }
    argv.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setpgid(0, 0);
      open_as("in", O_RDONLY | O_CREAT, STDIN_FILENO);
      open_as("out", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
      open_as("err", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
      for (const auto& [resource, bytes] : limits_) {
        const rlimit limit{bytes, bytes};
        ::setrlimit(resource, &limit);
      }
      for (const auto& [name, value] : environment_) {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
      ::execv(argv[0], argv.data());
      ::_exit(97);
    }
    return pid;
  }
  // Its exit status; 1000 + signal where one killed heaptape itself.
  int wait(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    out_ = text_of(file("out"));
    err_ = text_of(file("err"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  int record(std::vector<std::string> arguments) { return wait(start(std::move(arguments))); }
  // Until the program has written something to its output.
  void await_output() const {
    while (text_of(file("out")).empty()) {
      ::usleep(1000);
    }
  }
  [[nodiscard]] std::vector<std::string> tape_names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(tapes())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  [[nodiscard]] format::TapeInfo info(const char* name = "run.tape") const {
    auto reader = format::TapeReader::open(tape(name));
    EXPECT_TRUE(reader) << name;
    return reader ? reader->info() : format::TapeInfo{};
  }

  TemporaryFolder folder_;
  std::string out_;
  std::string err_;
  std::map<int, rlim_t> limits_;
  std::map<std::string, std::string> environment_;

 private:
  void open_as(const char* name, int flags, int fd) const {
    const int opened = ::open(file(name).c_str(), flags, 0644);
    ::dup2(opened, fd);
    ::close(opened);
  }
};

TEST_F(RecordCommand, ThePlainCaseLeavesOneTapeAndTheProgramsOutput) {
  std::ofstream(file("in")) << "hello";
  EXPECT_EQ(record({"-o", tape(), "--", "cat"}), 0);
  EXPECT_EQ(out_, "hello");
  EXPECT_THAT(err_, AllOf(HasSubstr(tape() + "  cat (pid "), HasSubstr("events of 1 thread, exit status 0")));
  EXPECT_THAT(tape_names(), UnorderedElementsAre("run.tape"));
  const format::TapeInfo tape_info = info();
  EXPECT_GT(tape_info.footer.events, 0U);
  EXPECT_EQ(tape_info.footer.recorder.own_allocations, 0U);
  EXPECT_THAT(tape_info.header.allocator, HasSubstr("libc.so"));
  EXPECT_THAT(tape_info.header.arguments, testing::ElementsAre("cat"));
}

TEST_F(RecordCommand, QuietSaysNothingWhereNothingIsWrong) {
  EXPECT_EQ(record({"-q", "-o", tape(), "--", "ls", "/"}), 0);
  EXPECT_EQ(err_, "");
}

TEST_F(RecordCommand, TheProgramsStatusIsReturned) {
  EXPECT_EQ(record({"-o", tape(), "--", "sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(record({"-o", tape(), "--", "sh", "-c", "kill -KILL $$"}), 128 + SIGKILL);
  EXPECT_EQ(info().footer.reason, format::EndReason::killed);
  EXPECT_EQ(info().footer.value, SIGKILL);
}

TEST_F(RecordCommand, WhatCannotBeStartedIsOneLineAndNothingIsStarted) {
  std::ofstream(file("plain")) << "text";
  const std::string plain = file("plain");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {{"-o", tape(), "--", "no-such-program"}, 2, "no-such-program: no such program on PATH"},
      {{"-o", tape(), "--", "/no/such/program"}, 2, "/no/such/program: no such program"},
      {{"-o", tape(), "--", plain}, 4, "chmod +x"},
      {{"-o", tape("%z.tape"), "--", "true"}, 2, "after %"},
      {{"-o", tape("none/run.tape"), "--", "true"}, 2, "cannot write in"},
      {{"-o", tapes(), "--", "true"}, 2, "not a regular file"},
      {{"-o", "/dev/null", "--", "true"}, 2, "not a regular file"},
      {{"-o", tape()}, 2, "program"},
      {{"--on-overflow", "explode", "--", "true"}, 2, "explode"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(record(c.arguments), c.code) << c.message;
    EXPECT_THAT(err_, HasSubstr(c.message));
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }
  EXPECT_THAT(tape_names(), IsEmpty());
}

TEST_F(RecordCommand, WithoutItsLibraryItSaysWhereItLooked) {
  environment_["HEAPTAPE_PRELOAD"] = "/no/such/library.so";
  EXPECT_EQ(record({"-o", tape(), "--", "true"}), 4);
  EXPECT_THAT(err_, AllOf(HasSubstr("/no/such/library.so"), HasSubstr("HEAPTAPE_PRELOAD")));
}

TEST_F(RecordCommand, ALibraryPathWithBlankAndColonWorks) {
  fs::create_directory(file("a b:c"));
  const fs::path library = file("a b:c") / "libheaptape_preload.so";
  fs::copy_file(HEAPTAPE_TEST_PRELOAD, library);
  environment_["HEAPTAPE_PRELOAD"] = library;
  environment_["TMPDIR"] = file("");
  EXPECT_EQ(record({"-q", "-o", tape(), "--", "ls", "/"}), 0);
  EXPECT_EQ(err_, "");
  EXPECT_GT(info().footer.events, 0U);
  for (const auto& entry : fs::directory_iterator(file(""))) {
    EXPECT_FALSE(entry.path().filename().native().starts_with("heaptape-"))
        << "left behind: " << entry.path();
  }
}

TEST_F(RecordCommand, AnOldPreloadIsKeptBehindOurs) {
  environment_["LD_PRELOAD"] = "libm.so.6";
  EXPECT_EQ(record({"-q", "-o", tape(), "--", "sh", "-c", "echo $LD_PRELOAD"}), 0);
  EXPECT_THAT(out_, testing::EndsWith("libheaptape_preload.so:libm.so.6\n"));
}

TEST_F(RecordCommand, AStaticProgramIsNamedAndTheAnswerIsNo) {
  EXPECT_EQ(record({"-q", "-o", tape(), "--", HEAPTAPE_TEST_STATIC_PROGRAM}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("recorded nothing: "), HasSubstr("is statically linked")));
  EXPECT_THAT(tape_names(), IsEmpty());
}

TEST_F(RecordCommand, AProgramWithItsOwnMallocIsNamedAndTheAnswerIsNo) {
  EXPECT_EQ(record({"-q", "-o", tape(), "--", HEAPTAPE_TEST_OWN_MALLOC_PROGRAM}), 1);
  EXPECT_THAT(err_, HasSubstr("an allocator of its own"));
}

TEST_F(RecordCommand, AProgramThatDropsThePreloadIsNamedAndTheAnswerIsNo) {
  EXPECT_EQ(record({"-q", "-o", tape(), "--", "env", "-i", "/bin/sleep", "1"}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("env (pid "), HasSubstr("went on as /"),
                          HasSubstr("sleep, which is not recorded")));
  EXPECT_EQ(info().footer.reason, format::EndReason::replaced);
}

TEST_F(RecordCommand, AWrapperGivesFileToTheProgramThatWasMeant) {
  EXPECT_EQ(record({"-o", tape(), "--", "env", "A=1", "ls", "/"}), 0);
  EXPECT_THAT(info().header.arguments, testing::ElementsAre("ls", "/"));
  EXPECT_THAT(tape_names(), UnorderedElementsAre("run.tape", "run.replaced-1.tape"));
  EXPECT_EQ(record({"-o", tape("sh.tape"), "--", "sh", "-c", "ls / ; exit 3"}), 3);
  EXPECT_THAT(info("sh.tape").header.arguments, testing::ElementsAre("ls", "/"));
  EXPECT_EQ(info("sh.tape").footer.value, 0);
}

TEST_F(RecordCommand, NoFollowRecordsTheProgramAlone) {
  EXPECT_EQ(record({"--no-follow", "-o", tape(), "--", "sh", "-c", "ls / ; exit 3"}), 3);
  EXPECT_THAT(tape_names(), UnorderedElementsAre("run.tape"));
  EXPECT_THAT(info().header.arguments, testing::ElementsAre("sh", "-c", "ls / ; exit 3"));
}

TEST_F(RecordCommand, NamesHoldProgramAndProcess) {
  EXPECT_EQ(record({"-o", tape("%e-%p.tape"), "--", "sh", "-c", "echo $$; exec ls /"}), 0);
  const std::string pid = out_.substr(0, out_.find('\n'));
  EXPECT_THAT(tape_names(), UnorderedElementsAre("sh-" + pid + ".tape", "ls-" + pid + ".tape"));
}

TEST_F(RecordCommand, TheSummaryAsJsonListsEveryTape) {
  EXPECT_EQ(
      record({"-q", "-o", tape(), "--summary", file("summary.json"), "--", "sh", "-c", "ls / ; exit 3"}), 3);
  const auto json = nlohmann::json::parse(text_of(file("summary.json")));
  EXPECT_EQ(json.at("schema"), "heaptape-record-1");
  EXPECT_EQ(json.at("program_status"), 3);
  EXPECT_EQ(json.at("largest"), tape());
  ASSERT_THAT(json.at("tapes"), SizeIs(tape_names().size()));
  std::uint64_t events = 0;
  for (const auto& t : json.at("tapes")) {
    EXPECT_TRUE(fs::exists(t.at("path").get<std::string>()));
    EXPECT_EQ(t.at("reason"), "exited");
    events += t.at("events").get<std::uint64_t>();
  }
  EXPECT_EQ(json.at("events"), events);
}

TEST_F(RecordCommand, ATapeOfAnEarlierRecordingIsReplacedNotWrittenOver) {
  std::ofstream(tape()) << "old";
  const int old = ::open(tape().c_str(), O_RDONLY);
  EXPECT_EQ(record({"-q", "-o", tape(), "--", "ls", "/"}), 0);
  char text[8] = {};
  EXPECT_EQ(::read(old, text, sizeof text), 3);
  ::close(old);
  EXPECT_GT(info().footer.events, 0U);
}

// A program that allocates and says so, then waits for a signal that it dies of, or ignores.
const char* const waits = "echo ready; while :; do sleep 0.01; done";

TEST_F(RecordCommand, ASignalSentToItIsPassedOnToTheProgram) {
  const pid_t pid = start({"-q", "-o", tape(), "--", "bash", "-c", waits});
  await_output();
  ::kill(pid, SIGTERM);
  EXPECT_EQ(wait(pid), 128 + SIGTERM);
  EXPECT_EQ(err_, "");
}

TEST_F(RecordCommand, ASecondSignalEndsTheRecordingAndTheProgramRunsOn) {
  const std::string mark = file("goes-on");
  const pid_t pid =
      start({"--no-follow", "-o", tape(), "--", "bash", "-c",
             "trap 'echo got' TERM; echo ready $$; while [ ! -e " + mark + " ]; do sleep 0.01; done"});
  await_output();
  ::kill(pid, SIGTERM);
  while (text_of(file("out")).find("got") == std::string::npos) {
    ::usleep(1000);
  }
  ::kill(pid, SIGTERM);
  EXPECT_EQ(wait(pid), 0);
  EXPECT_EQ(info().footer.reason, format::EndReason::stopped);
  const pid_t program = std::stoi(out_.substr(6));
  EXPECT_TRUE(thread_exists(program, program));
  std::ofstream(mark) << "end";
  while (thread_exists(program, program)) {
    ::usleep(1000);
  }
}

TEST_F(RecordCommand, ChildrenThatOutliveTheProgramAreRecordedToTheirEnd) {
  const std::string mark = file("end");
  const pid_t pid = start({"-o", tape(), "--", "bash", "-c",
                           "(echo ready; while [ -d " + file("").string() + " ] && [ ! -e " + mark +
                               " ]; do :; done; exit 9) & exit 5"});
  await_output();
  while (text_of(file("err")).find("still recording bash (pid ") == std::string::npos) {
    ::usleep(1000);
  }
  std::ofstream(mark) << "end";
  EXPECT_EQ(wait(pid), 5);
  ASSERT_THAT(tape_names(), SizeIs(2));
  for (const std::string& name : tape_names()) {
    const format::TapeFooter footer = info(name.c_str()).footer;
    EXPECT_EQ(footer.reason, format::EndReason::exited);
    EXPECT_EQ(name == "run.tape" ? 5 : 9, footer.value) << name;
  }
}

TEST_F(RecordCommand, ASignalEndsTheWaitForChildrenThatOutliveTheProgram) {
  const std::string mark = file("end");
  const pid_t pid = start(
      {"-o", tape(), "--", "bash", "-c",
       "(echo ready; while [ -d " + file("").string() + " ] && [ ! -e " + mark + " ]; do :; done) & exit 0"});
  await_output();
  while (text_of(file("err")).find("still recording") == std::string::npos) {
    ::usleep(1000);
  }
  ::kill(pid, SIGINT);
  EXPECT_EQ(wait(pid), 0);
  for (const std::string& name : tape_names()) {
    EXPECT_EQ(info(name.c_str()).footer.reason,
              name == "run.tape" ? format::EndReason::exited : format::EndReason::stopped);
  }
  std::ofstream(mark) << "end";
}

TEST_F(RecordCommand, AFullFileSystemEndsTheRecordingAndNotTheProgram) {
  limits_[RLIMIT_FSIZE] = 4 << 20;
  EXPECT_EQ(record({"-q", "-o", tape(), "--", HEAPTAPE_TEST_BUSY_PROGRAM, "5000000"}), 4);
  EXPECT_EQ(out_, "done\n");
  EXPECT_THAT(err_,
              AllOf(HasSubstr("recording of "), HasSubstr("run.tape"), HasSubstr("the program runs on")));
  EXPECT_TRUE(info().damage.truncated);
  EXPECT_GT(info().events, 0U);
}

TEST_F(RecordCommand, DroppingNeverWaitsAndCountsWhatItLost) {
  environment_["HEAPTAPE_CLOCK"] = "sequence";
  EXPECT_EQ(
      record({"-q", "--on-overflow", "drop", "-o", tape(), "--", HEAPTAPE_TEST_BUSY_PROGRAM, "3000000"}), 0);
  const format::TapeInfo tape_info = info();
  EXPECT_EQ(tape_info.header.clock, format::ClockSource::sequence);
  EXPECT_EQ(tape_info.footer.recorder.stalls, 0U);
  std::uint64_t lost = 0;
  for (const format::Gap& gap : tape_info.gaps) {
    lost += gap.lost_events;
  }
  EXPECT_EQ(lost, tape_info.footer.recorder.dropped_events);
  EXPECT_GE(tape_info.footer.events + lost, 6'000'000U);
}

}  // namespace
}  // namespace heaptape::collector
