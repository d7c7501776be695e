// The preload in real programs (tests/guests), with a collector of the smallest kind behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/recorder/preload_collector.h"
#include "tests/recorder/preload_model.h"

namespace heaptape::preload_test {
namespace {

using ring::Call;
using ring::Phase;
using ring::RingRecord;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::string guest(const std::string& name) { return std::string(HEAPTAPE_TEST_GUESTS) + "/" + name; }

// A recorded run of one guest.
struct Recording {
  GuestResult result;
  std::vector<std::unique_ptr<RecordedProcess>> processes;

  [[nodiscard]] const RecordedProcess& first() const { return *processes.at(0); }
};
Recording record(const std::vector<std::string>& command, const CollectorOptions& options = {},
                 const std::string& preload_before = "", const std::string& preload_behind = "") {
  TestCollector collector(options);
  std::string preload = preload_path();
  if (!preload_behind.empty()) {
    preload += ":" + preload_behind;
  }
  if (!preload_before.empty()) {
    preload = preload_before + ":" + preload;
  }
  Recording run;
  run.result = run_guest(command, collector.name(), {}, preload);
  run.processes = collector.finish();
  return run;
}
// The same program without us: what it is to look like.
GuestResult alone(const std::vector<std::string>& command, const std::string& preload = "") {
  return run_guest(command, "", {}, preload.empty() ? "/usr/lib/x86_64-linux-gnu/libdl.so.2" : preload);
}

void expect_sound(const RecordedProcess& p) {
  EXPECT_FALSE(p.damaged());
  EXPECT_EQ(p.control().own_allocations.load(), 0U);
  EXPECT_EQ(p.control().signal_losses.load(), 0U);
  EXPECT_EQ(p.control().lost_threads.load(), 0U);
  EXPECT_EQ(p.control().dropped.load(), 0U);
  const Life life = live_through(p.events());
  EXPECT_EQ(life.born_twice, 0U);
  EXPECT_EQ(life.died_unborn, 0U);
}

TEST(Preload, RecordsEveryCEntryPointOnceWithItsExactArguments) {
  const Recording run = record({guest("entry_points_c")});
  ASSERT_TRUE(run.result.exited_with(0)) << run.result.output;
  ASSERT_EQ(run.processes.size(), 1U);
  expect_sound(run.first());
  EXPECT_THAT(told(between_marks(run.first().events())),
              ElementsAre("malloc 101", "free", "calloc 77", "free",                                //
                          "realloc begin 103 null", "realloc end 103", "realloc begin 207",         //
                          "realloc end 207", "free",                                                //
                          "reallocarray begin 105 null", "reallocarray end 105",                    //
                          "reallocarray begin 210", "reallocarray end 210", "free",                 //
                          "posix_memalign 301 @64", "free", "aligned_alloc 256 @128", "free",       //
                          "memalign 303 @32", "free", "valloc 305", "free", "pvalloc 307", "free",  //
                          "malloc 109", "free_sized 109", "aligned_alloc 192 @64",                  //
                          "free_aligned_sized 192 @64", "malloc 111", "cfree", "free null", "malloc_trim"));
}

TEST(Preload, RecordsEveryFormOfNewAndDeleteOnceUnderItsOwnName) {
  const Recording run = record({guest("entry_points_cxx")});
  ASSERT_TRUE(run.result.exited_with(0)) << run.result.output;
  expect_sound(run.first());
  EXPECT_THAT(told(between_marks(run.first().events())),
              ElementsAre("new 201", "delete", "new[] 202", "delete[]", "new nothrow 203", "delete",       //
                          "new[] nothrow 204", "delete[]", "new 205", "delete sized 205", "new[] 206",     //
                          "delete[] sized 206", "new 207 @64", "delete @64", "new[] 208 @128",             //
                          "delete[] @128", "new nothrow 209 @32", "delete @32", "new[] nothrow 210 @256",  //
                          "delete[] @256", "new 211 @64", "delete sized 211 @64", "new[] 212 @64",         //
                          "delete[] sized 212 @64", "delete null", "delete[] null"));
}

TEST(Preload, TellsFailedCallsAndWhatTheyLeaveAlive) {
  const Recording run = record({guest("edge_cases")});
  ASSERT_EQ(run.result.output, alone({guest("edge_cases")}).output);
  expect_sound(run.first());
  const std::string huge = std::to_string(PTRDIFF_MAX);
  EXPECT_THAT(told(between_marks(run.first().events())),
              ElementsAreArray(std::vector<std::string>{"malloc 0",
                                                        "free",
                                                        "malloc 40",
                                                        "realloc begin 0",
                                                        "realloc end 0 null",
                                                        "free null",
                                                        "realloc begin 41 null",
                                                        "realloc end 41",
                                                        "free",
                                                        "malloc 42",
                                                        "realloc begin " + huge,
                                                        "realloc failed " + huge,
                                                        "free",
                                                        "calloc most null",
                                                        "reallocarray begin most null",
                                                        "reallocarray failed most",
                                                        "malloc 43",
                                                        "reallocarray begin most",
                                                        "reallocarray failed most",
                                                        "free",
                                                        "malloc " + huge + " null",
                                                        "aligned_alloc 100 @24",
                                                        "free",
                                                        "memalign 44 @48",
                                                        "free",
                                                        "posix_memalign 45 @24 null",
                                                        "posix_memalign 46 @2 null",
                                                        "posix_memalign 0 @64",
                                                        "free",
                                                        "aligned_alloc 0 @64",
                                                        "free",
                                                        "free null"}));
}

TEST(Preload, KeepsErrno) {
  const Recording run = record({guest("errno_kept")});
  EXPECT_TRUE(run.result.exited_with(0)) << run.result.output;
  EXPECT_EQ(run.result.output, alone({guest("errno_kept")}).output);
  expect_sound(run.first());
}

TEST(Preload, RecordsTheCallersReturnAddressWhenAsked) {
  CollectorOptions options;
  options.stacks = ring::Stacks::caller;
  const Recording run = record({guest("entry_points_cxx")}, options);
  expect_sound(run.first());
  const auto events = between_marks(run.first().events());
  ASSERT_EQ(events.size(), 26U);
  for (const RingRecord& e : events) {
    EXPECT_NE(e.site, 0U) << told(e);
    EXPECT_LT(e.site - events[0].site + 0x10000, 0x20000U) << told(e) << ": not in main";
  }
  EXPECT_NE(events[0].site, events[1].site);
}

TEST(Preload, GoesOnBehindANewThatThrows) {
  const Recording run = record({guest("throwing_new")});
  ASSERT_EQ(run.result.output, alone({guest("throwing_new")}).output);
  expect_sound(run.first());
  const auto events = between_marks(run.first().events());
  ASSERT_EQ(events.size(), 2000U);
  for (std::size_t i = 0; i < events.size(); i += 2) {
    ASSERT_EQ(told(events[i]), "new 77");
    ASSERT_EQ(told(events[i + 1]), "delete");
  }
  EXPECT_GT(run.first().control().nested_calls.load(), 1900U);  // malloc below new, free below delete
  // Eight calls fail: each once, however often the new-handler had it tried again.
  const auto all = run.first().events();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const RingRecord& e) { return e.size_bytes == PTRDIFF_MAX && e.address == 0; }),
            7);
}

TEST(Preload, GoesOnBehindAJumpOutOfItsHooks) {
  const Recording run = record({guest("longjmp_out")});
  ASSERT_EQ(run.result.output, alone({guest("longjmp_out")}).output);
  expect_sound(run.first());
  const auto events = between_marks(run.first().events());
  ASSERT_EQ(events.size(), 2000U);
  EXPECT_EQ(told(events[0]), "new 78");

  const Recording other = record({guest("jump_from_signal")}, {}, "", guest("libraising_malloc.so"));
  ASSERT_EQ(other.result.output, alone({guest("jump_from_signal")}, guest("libraising_malloc.so")).output);
  EXPECT_EQ(between_marks(other.first().events()).size(), 2000U);
}

TEST(Preload, FindsOperatorNewInAPluginLoadedLocally) {
  const std::vector<std::string> command = {guest("plugin_host"), guest("libplugin.so")};
  const Recording run = record(command);
  ASSERT_EQ(run.result.output, alone(command).output);
  ASSERT_TRUE(run.result.exited_with(0));
  expect_sound(run.first());
  const auto all = run.first().events();
  EXPECT_TRUE(
      std::any_of(all.begin(), all.end(), [](const RingRecord& e) { return e.call == Call::operator_new; }));
}

TEST(Preload, RecordsThreadsUntilBehindTheirLastDestructor) {
  const std::vector<std::string> command = {guest("key_destructors"), "300"};
  const Recording run = record(command);
  ASSERT_EQ(run.result.output, alone(command).output);
  expect_sound(run.first());
  const auto all = run.first().events();
  const auto of_size = [&](std::uint64_t size) {
    return std::count_if(all.begin(), all.end(), [&](const RingRecord& e) { return e.size_bytes == size; });
  };
  EXPECT_EQ(of_size(61), 300 * 8 * 4);
  EXPECT_EQ(of_size(62), 300);
  EXPECT_GE(run.first().threads().size(), 301U);
}

TEST(Preload, GivesEachForkedChildASegmentOfItsOwn) {
  const Recording run = record({guest("fork_threads")});
  ASSERT_EQ(run.result.output, alone({guest("fork_threads")}).output);
  ASSERT_EQ(run.processes.size(), 22U);
  EXPECT_EQ(run.first().hello().origin, ring::Origin::image);
  expect_sound(run.first());
  for (std::size_t i = 1; i < run.processes.size(); ++i) {
    const RecordedProcess& child = *run.processes[i];
    EXPECT_EQ(child.hello().origin, ring::Origin::forked);
    const auto events = child.events();
    const auto of_size = [&](std::uint64_t size) {
      return std::count_if(events.begin(), events.end(),
                           [&](const RingRecord& e) { return e.size_bytes == size; });
    };
    const bool is_grandchild = of_size(55) != 0;
    EXPECT_EQ(of_size(53), is_grandchild ? 0 : 100);
    EXPECT_EQ(of_size(55), is_grandchild ? 10 : 0);
    EXPECT_EQ(child.control().own_allocations.load(), 0U);
    EXPECT_EQ(live_through(events).born_twice, 0U);
  }
}

TEST(Preload, RecordsAVforkChildAsTheSuspendedThread) {
  const Recording run = record({guest("vfork_child")});
  ASSERT_EQ(run.result.output, alone({guest("vfork_child")}).output);
  ASSERT_EQ(run.processes.size(), 1U);
  expect_sound(run.first());
  const auto events = between_marks(run.first().events());
  const auto count = [&](std::uint64_t size) {
    return std::count_if(events.begin(), events.end(),
                         [&](const RingRecord& e) { return e.size_bytes == size; });
  };
  EXPECT_EQ(count(50), 50);
  EXPECT_EQ(count(51), 50);
  EXPECT_EQ(count(52), 50);
}

TEST(Preload, LeavesAProgramAloneWhenNobodyListens) {
  const GuestResult by_itself = alone({guest("entry_points_cxx")});
  for (const std::string& socket :
       std::vector<std::string>{"", "heaptape-test-nobody", "x", std::string(300, 'y')}) {
    const GuestResult r = run_guest({guest("entry_points_cxx")}, socket);
    EXPECT_EQ(r.wait_status, by_itself.wait_status) << socket;
    EXPECT_EQ(r.output, by_itself.output) << socket;
  }
}

TEST(Preload, LeavesAProgramAloneWhenTheCollectorRefuses) {
  CollectorOptions refusing;
  refusing.answer = ring::WelcomeStatus::refused;
  CollectorOptions other_version;
  other_version.version = ring::protocol_version + 1;
  for (const CollectorOptions& options : {refusing, other_version}) {
    const Recording run = record({guest("entry_points_c")}, options);
    EXPECT_TRUE(run.result.exited_with(0)) << run.result.output;
  }
}

TEST(Preload, StampsFromTheSharedSequenceWithoutACounter) {
  CollectorOptions options;
  options.clock = ring::ClockSource::sequence;
  const Recording run = record({guest("entry_points_c")}, options);
  expect_sound(run.first());
  const auto all = run.first().events();
  ASSERT_GT(all.size(), 30U);
  EXPECT_GE(run.first().control().sequence.load(), all.size() - 2);  // realloc(NULL, n) takes one for two
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LE(all[i - 1].stamp, all[i].stamp);
    EXPECT_LT(all[i].stamp, 1000U);
  }
}

}  // namespace
}  // namespace heaptape::preload_test
