#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "recorder/collector/proc.h"
#include "recorder/collector/program.h"
#include "recorder/collector/signals.h"

namespace heaptape::collector {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "heaptape-test-XXXXXX").native();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path file(const char* name, const char* text, mode_t mode) const {
    std::ofstream(path_ / name) << text;
    ::chmod((path_ / name).c_str(), mode);
    return path_ / name;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

ProgramEnd run(const std::string& path, const std::vector<std::string>& arguments,
               const std::vector<std::string>& extra = {}) {
  const Signals signals;
  Program program = Program::start(path, arguments, extra, signals.for_program()).value();
  pollfd wait{program.pidfd(), POLLIN, 0};
  ::poll(&wait, 1, -1);
  return program.poll_end().value();
}

TEST(FindProgram, TakesTheFirstExecutableFileOfTheSearchPath) {
  const Folder a;
  const Folder b;
  a.file("tool", "not executable", 0644);
  const fs::path wanted = b.file("tool", "#!/bin/sh\n", 0755);
  const std::string search = a.path().native() + ":/nowhere:" + b.path().native();
  EXPECT_EQ(find_program("tool", search.c_str()).value(), wanted);
}

TEST(FindProgram, AnEmptyPartOfTheSearchPathIsTheWorkingDirectory) {
  const Folder a;
  a.file("tool", "#!/bin/sh\n", 0755);
  const fs::path before = fs::current_path();
  fs::current_path(a.path());
  EXPECT_EQ(find_program("tool", "/nowhere:").value(), "./tool");
  fs::current_path(before);
}

TEST(FindProgram, ANameWithASlashIsNotSearchedFor) {
  EXPECT_EQ(find_program("/bin/sh", "/nowhere").value(), "/bin/sh");
  EXPECT_FALSE(find_program("./sh", "/bin"));
}

TEST(FindProgram, WhatIsMissingIsAUsageErrorAndWhatMayNotRunASystemError) {
  const Folder a;
  const fs::path plain = a.file("tool", "text", 0644);
  const auto missing = find_program("no-such-tool", "/bin:/usr/bin");
  EXPECT_EQ(missing.error().code(), format::ExitCode::usage);
  EXPECT_THAT(missing.error().message(), HasSubstr("no-such-tool: no such program on PATH"));
  EXPECT_EQ(find_program("/no/such/tool", nullptr).error().code(), format::ExitCode::usage);
  EXPECT_EQ(find_program("", "/bin").error().code(), format::ExitCode::usage);
  EXPECT_EQ(find_program(a.path().native(), nullptr).error().code(), format::ExitCode::system);
  const auto barred = find_program(plain.native(), nullptr);
  EXPECT_EQ(barred.error().code(), format::ExitCode::system);
  EXPECT_THAT(barred.error().message(), HasSubstr("chmod +x"));
  EXPECT_EQ(find_program("tool", a.path().c_str()).error().code(), format::ExitCode::system);
}

TEST(Program, ItsExitStatusAndItsSignalComeBackAsAShellGivesThem) {
  EXPECT_EQ(run("/bin/sh", {"sh", "-c", "exit 7"}).shell_status(), 7);
  EXPECT_EQ(run("/bin/sh", {"sh", "-c", "kill -9 $$"}).shell_status(), 137);
}

TEST(Program, AScriptWithoutAnInterpreterLineGoesToTheShell) {
  const Folder a;
  const fs::path script = a.file("script", "exit $1\n", 0755);
  EXPECT_EQ(run(script, {"script", "9"}).value, 9);
}

TEST(Program, AnExecutableWhoseInterpreterIsMissingIsAnError) {
  const Folder a;
  const fs::path script = a.file("script", "#!/no/such/interpreter\n", 0755);
  const Signals signals;
  const auto result = Program::start(script, {"script"}, {}, signals.for_program());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), format::ExitCode::system);
}

TEST(Program, ExtraVariablesReplaceThoseOfTheSameName) {
  ::setenv("HEAPTAPE_TEST_VARIABLE", "old", 1);
  const auto end = run("/bin/sh", {"sh", "-c", "test \"$HEAPTAPE_TEST_VARIABLE\" = new && test -n \"$PATH\""},
                       {"HEAPTAPE_TEST_VARIABLE=new"});
  EXPECT_EQ(end.value, 0);
}

std::string status_line(const std::string& status, const char* key) {
  const std::size_t begin = status.find(key);
  return status.substr(begin, status.find('\n', begin) - begin);
}

TEST(Program, ItFindsSignalsAndDescriptorsAsTheyWereBeforeUs) {
  const Folder a;
  const fs::path out = a.path() / "status";
  const std::string before = read_proc_file(::getpid(), "status");
  const Signals signals;
  const std::string script = "test ! -e /proc/self/fd/" + std::to_string(signals.fd()) +
                             " && exec cat /proc/self/status > " + out.native();
  Program program = Program::start("/bin/sh", {"sh", "-c", script}, {}, signals.for_program()).value();
  pollfd wait{program.pidfd(), POLLIN, 0};
  ::poll(&wait, 1, -1);
  EXPECT_EQ(program.poll_end().value().shell_status(), 0);
  std::stringstream after;
  after << std::ifstream(out).rdbuf();
  EXPECT_EQ(status_line(after.str(), "SigBlk:"), status_line(before, "SigBlk:"));
  EXPECT_EQ(status_line(after.str(), "SigIgn:"), status_line(before, "SigIgn:"));
}

TEST(Program, TheEndOfAProcessThatIsNotOurChildIsKnownWhileItIsAZombie) {
  // The child ends first and stays a zombie of `sh`, whose number we know by its file.
  const Folder a;
  const fs::path number = a.path() / "number";
  const Signals signals;
  const std::string script = "(exec sh -c 'echo $$ > " + number.native() + ".new; mv " + number.native() +
                             ".new " + number.native() + "; read line; exit 5') & exec sleep 1000";
  Program program = Program::start("/bin/sh", {"sh", "-c", script}, {}, signals.for_program()).value();
  pid_t child = 0;
  while (child == 0) {
    std::ifstream(number) >> child;
  }
  // Its standard input is /dev/null (a background job): `read` fails at once and it exits.
  const format::Descriptor pidfd = open_pidfd(child);
  ASSERT_TRUE(pidfd);
  pollfd wait{pidfd.get(), POLLIN, 0};
  ::poll(&wait, 1, -1);
  const auto end = end_of(child, pidfd.get());
  program.send_signal(SIGKILL);
  pollfd gone{program.pidfd(), POLLIN, 0};
  ::poll(&gone, 1, -1);
  EXPECT_EQ(program.poll_end().value().value, SIGKILL);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->killed);
  EXPECT_EQ(end->value, 5);
}

TEST(WhyNotRecordable, AnOrdinaryDynamicProgramHasNoReason) {
  EXPECT_EQ(why_not_recordable("/bin/sh"), "");
  EXPECT_EQ(why_not_recordable("/etc/passwd"), "");
  EXPECT_EQ(why_not_recordable("/no/such/file"), "");
}

TEST(WhyNotRecordable, AStaticProgramIsNamedAsSuch) {
  EXPECT_THAT(why_not_recordable(HEAPTAPE_TEST_STATIC_PROGRAM), HasSubstr("statically linked"));
}

TEST(WhyNotRecordable, AProgramWithItsOwnMallocIsNamedAsSuch) {
  EXPECT_THAT(why_not_recordable(HEAPTAPE_TEST_OWN_MALLOC_PROGRAM), HasSubstr("allocator of its own"));
}

}  // namespace
}  // namespace heaptape::collector
