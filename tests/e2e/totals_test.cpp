// Totals on the tape against those of an independent counting preload, exactly.
//
// Twice: once below the recorder in the same run, which holds for any program, whatever it does;
// and once in a run of its own, for programs that do the same in every run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/e2e/counter/counter.h"
#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"

namespace heaptape::e2e {
namespace {

namespace fs = std::filesystem;

struct Program {
  const char* name;
  std::vector<std::string> argv;
  bool repeats = true;  // the same calls in every run
  std::map<std::string, std::string> environment = {};
};

void PrintTo(const Program& p, std::ostream* out) { *out << p.name; }

const std::string rounds = std::to_string(200000 / size_divisor);
const Program programs[] = {
    {"EntryPointsOfC", {HEAPTAPE_GUESTS "/entry_points_c"}},
    {"EntryPointsOfCxx", {HEAPTAPE_GUESTS "/entry_points_cxx"}},
    {"EdgesOfTheInterface", {HEAPTAPE_GUESTS "/edge_cases"}},
    {"C", {HEAPTAPE_GUESTS "/workload_c", rounds}},
    {"Cxx", {HEAPTAPE_GUESTS "/workload_cxx", "300"}},
    {"ThrowingNew", {HEAPTAPE_GUESTS "/throwing_new"}},
    {"Constructors", {HEAPTAPE_GUESTS "/early_host"}},
    {"Python", {"/usr/bin/python3", "-s", "-S", "-B", HEAPTAPE_GUEST_SOURCES "/objects.py"}},
    {"PythonOnMalloc",
     {"/usr/bin/python3", "-s", "-S", "-B", HEAPTAPE_GUEST_SOURCES "/objects.py"},
     true,
     {{"PYTHONMALLOC", "malloc"}}},
    {"Perl", {"/usr/bin/perl", HEAPTAPE_GUEST_SOURCES "/words.pl"}},
    {"Threads", {HEAPTAPE_GUESTS "/threads", "500", "50"}, false},
    {"KeyDestructors", {HEAPTAPE_GUESTS "/key_destructors", "50"}, false},
    {"ThreadLocals", {HEAPTAPE_GUESTS "/thread_locals"}, false},
    {"HandOver", {HEAPTAPE_GUESTS "/handover", "8", "400000"}, false},
    {"Exit", {HEAPTAPE_GUESTS "/exits", "return"}},
    {"UnderscoreExit", {HEAPTAPE_GUESTS "/exits", "_exit"}},
    {"QuickExit", {HEAPTAPE_GUESTS "/exits", "quick_exit"}},
    {"Abort", {HEAPTAPE_GUESTS "/exits", "abort"}},
    {"KillsItself", {HEAPTAPE_GUESTS "/exits", "kill"}},
};

// The page of the image that ran `program`.
Totals counted(const fs::path& folder, const std::string& program) {
  std::vector<Totals> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name;
    const Totals totals = counted_totals(entry.path(), &name);
    if (name == program) {
      found.push_back(totals);
    }
  }
  EXPECT_EQ(found.size(), 1U) << program;
  return found.empty() ? Totals{} : found.front();
}

// The recorder hands these on as free, which they are by definition and every C library has: below it
// they look alike.
Totals as_free(Totals totals) {
  for (const char* kind : {"cfree", "free_sized", "free_aligned_sized"}) {
    if (const auto found = totals.find(kind); found != totals.end()) {
      totals["free"].calls += found->second.calls;
      totals["free"].nulls += found->second.nulls;
      totals.erase(found);
    }
  }
  return totals;
}

// The environment that the recorder gives to a program, as far as it is the recorder's doing.
std::map<std::string, std::string> environment_under_the_recorder() {
  Recording recording;
  Command command;
  command.argv = {"/usr/bin/env"};
  record(command, recording);
  std::map<std::string, std::string> variables;
  std::string line;
  std::istringstream lines(recording.outcome.out);
  while (std::getline(lines, line)) {
    if (line.starts_with("LD_PRELOAD=") || line.starts_with("HEAPTAPE_")) {
      const std::size_t equals = line.find('=');
      variables[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  EXPECT_TRUE(variables.contains("LD_PRELOAD")) << recording.outcome.out;
  return variables;
}

class TotalsOfARun : public ::testing::TestWithParam<Program> {
 protected:
  void SetUp() override {
    if (!fs::exists(GetParam().argv.front())) {
      GTEST_SKIP() << GetParam().argv.front() << " is not installed";
    }
    fs::create_directory(counts_.path() / "a");
    fs::create_directory(counts_.path() / "b");
    executable_ = fs::canonical(GetParam().argv.front()).string();
  }

  Command command() const {
    Command command;
    command.argv = {"/usr/bin/setarch", "-R"};
    command.argv.insert(command.argv.end(), GetParam().argv.begin(), GetParam().argv.end());
    command.environment = GetParam().environment;
    command.environment.insert({{"PYTHONHASHSEED", "0"}, {"PERL_HASH_SEED", "0"}});
    return command;
  }

  Folder counts_;
  std::string executable_;
};

class TotalsOfEveryRun : public TotalsOfARun {};

TEST_P(TotalsOfARun, AreThoseOfACounterBelowTheRecorder) {
  Command stacked = command();
  stacked.environment[HEAPTAPE_COUNTER_VARIABLE] = (counts_.path() / "a/n").string();
  stacked.preload = {HEAPTAPE_COUNTER};
  Recording recording;
  record(stacked, recording);
  ASSERT_FALSE(recording.outcome.timed_out);
  const Tape tape = tape_of(recording.tapes, executable_, Events::summed);
  expect_sound(tape);
  EXPECT_THAT(as_free(tape.totals), ::testing::ContainerEq(counted(counts_.path() / "a", executable_)));
}

TEST_P(TotalsOfEveryRun, AreThoseOfACounterInARunOfItsOwn) {
  Command both = command();
  both.environment[HEAPTAPE_COUNTER_VARIABLE] = (counts_.path() / "a/n").string();
  Recording recording;
  record(both, recording);
  ASSERT_FALSE(recording.outcome.timed_out);
  const Tape tape = tape_of(recording.tapes, executable_, Events::summed);
  expect_sound(tape);

  // Programs allocate by the length of their environment, so the counted run gets one that is just
  // as long: the same variables, the path of the counter padded to the path of the recorder.
  Command alone = both;
  std::map<std::string, std::string> variables = environment_under_the_recorder();
  const std::size_t length = variables["LD_PRELOAD"].size();
  const Folder links;
  std::string link = (links.path() / "c.so").string();
  fs::create_symlink(HEAPTAPE_COUNTER, link);
  ASSERT_LE(link.size(), length);
  link.insert(link.size() - 4, length - link.size(), '/');
  for (auto& [name, value] : variables) {
    alone.environment[name] = name == "LD_PRELOAD" ? link : std::string(value.size(), 'x');
  }
  const Outcome outcome = run(alone);
  ASSERT_EQ(outcome.status, recording.outcome.status) << outcome.err;
  EXPECT_EQ(outcome.out, recording.outcome.out);
  EXPECT_THAT(tape.totals, ::testing::ContainerEq(counted(counts_.path() / "a", executable_)));
}

std::string name_of(const ::testing::TestParamInfo<Program>& tested) { return tested.param.name; }

std::vector<Program> programs_that_repeat() {
  std::vector<Program> found(std::begin(programs), std::end(programs));
  std::erase_if(found, [](const Program& p) { return !p.repeats; });
  return found;
}

INSTANTIATE_TEST_SUITE_P(Of, TotalsOfARun, ::testing::ValuesIn(programs), name_of);
INSTANTIATE_TEST_SUITE_P(Of, TotalsOfEveryRun, ::testing::ValuesIn(programs_that_repeat()), name_of);

}  // namespace
}  // namespace heaptape::e2e
