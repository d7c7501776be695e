// Every entry point, call by call: what the guest did between its marks is what the tape says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/run.h"
#include "tests/e2e/tape_contents.h"

namespace heaptape::e2e {
namespace {

using ::testing::ElementsAre;

Tape tape_of_guest(const std::string& name) {
  Recording recording;
  record(guest(name), recording);
  EXPECT_EQ(recording.outcome.status, 0) << recording.outcome.err;
  Tape tape = tape_of(recording.tapes, guest_path(name));
  expect_sound(tape);
  return tape;
}

TEST(EntryPoints, OfCAreAllOnTheTapeWithTheirArguments) {
  const Tape tape = tape_of_guest("entry_points_c");
  EXPECT_THAT(
      described(between_marks(tape.events)),
      ElementsAre("malloc(101)", "free(#101)", "calloc(77)", "free(#77)", "realloc(null, 103)",
                  "realloc(#103, 207)", "free(#207)", "reallocarray(null, 105)", "reallocarray(#105, 210)",
                  "free(#210)", "posix_memalign(301, align 64)", "free(#301)",
                  "aligned_alloc(256, align 128)", "free(#256)", "memalign(303, align 32)", "free(#303)",
                  "valloc(305)", "free(#305)", "pvalloc(307)", "free(#307)", "malloc(109)",
                  "free_sized(#109)", "aligned_alloc(192, align 64)", "free_aligned_sized(#192, align 64)",
                  "malloc(111)", "cfree(#111)", "free(null)", "malloc_trim()"));
}

TEST(EntryPoints, OfCxxAreAllOnTheTapeWithTheirArguments) {
  const Tape tape = tape_of_guest("entry_points_cxx");
  EXPECT_THAT(
      described(between_marks(tape.events)),
      ElementsAre("operator new(201)", "operator delete(#201)", "operator new[](202)",
                  "operator delete[](#202)", "operator new(nothrow)(203)", "operator delete(#203)",
                  "operator new[](nothrow)(204)", "operator delete[](#204)", "operator new(205)",
                  "operator delete(size)(#205)", "operator new[](206)", "operator delete[](size)(#206)",
                  "operator new(207, align 64)", "operator delete(#207, align 64)",
                  "operator new[](208, align 128)", "operator delete[](#208, align 128)",
                  "operator new(nothrow)(209, align 32)", "operator delete(#209, align 32)",
                  "operator new[](nothrow)(210, align 256)", "operator delete[](#210, align 256)",
                  "operator new(211, align 64)", "operator delete(size)(#211, align 64)",
                  "operator new[](212, align 64)", "operator delete[](size)(#212, align 64)",
                  "operator delete(null)", "operator delete[](null)"));
}

TEST(EntryPoints, AtTheirEdgesAreRecordedAsWhatTheCLibraryMadeOfThem) {
  const Tape tape = tape_of_guest("edge_cases");
  const std::string huge = std::to_string(PTRDIFF_MAX);
  const std::string overflow = std::to_string(SIZE_MAX);
  EXPECT_THAT(
      described(between_marks(tape.events)),
      ElementsAre("malloc(0)", "free(#0)", "malloc(40)", "realloc(#40, 0) freed", "free(null)",
                  "realloc(null, 41)", "free(#41)", "malloc(42)", "realloc(" + huge + ") failed", "free(#42)",
                  "calloc(" + overflow + ") failed", "reallocarray(null, " + overflow + ") failed",
                  "malloc(43)", "reallocarray(" + overflow + ") failed", "free(#43)",
                  "malloc(" + huge + ") failed", "aligned_alloc(100, align 24)", "free(#100)",
                  "memalign(44, align 48)", "free(#44)", "posix_memalign(45, align 24) failed",
                  "posix_memalign(46, align 2) failed", "posix_memalign(0, align 64)", "free(#0)",
                  "aligned_alloc(0, align 64)", "free(#0)", "free(null)"));
}

TEST(EntryPoints, OfAPlugInAreRecordedThoughItsHostIsC) {
  Recording recording;
  record(guest("plugin_host", {guest_path("libplugin.so")}), recording);
  EXPECT_EQ(recording.outcome.status, 0) << recording.outcome.err;
  const Tape tape = tape_of(recording.tapes, guest_path("plugin_host"));
  expect_sound(tape);
  // Three times loaded, fifty rounds each.
  EXPECT_EQ(tape.count(format::Kind::operator_new, 333), 150U);
  EXPECT_EQ(tape.count(format::Kind::operator_new_array_nothrow, 334), 150U);
  EXPECT_EQ(tape.released(333), 150U);
  EXPECT_EQ(tape.count(format::Kind::operator_new, 128), 150U) << "the over-aligned type";
}

TEST(EntryPoints, AreRecordedOnAfterNewHasThrown) {
  const Tape tape = tape_of_guest("throwing_new");
  std::uint64_t failed = 0;
  for (const format::Event& event : tape.events) {
    failed += event.has(format::EventFlag::failed) ? 1U : 0U;
  }
  EXPECT_EQ(failed, 7U);
  EXPECT_EQ(tape.count(format::Kind::operator_new, 88), 1U);
  EXPECT_EQ(tape.released(88), 1U) << "a constructor that throws gives its block back";
  EXPECT_EQ(between_marks(tape.events).size(), 2000U);
  EXPECT_EQ(tape.count(format::Kind::operator_new, 77), 1000U);
}

TEST(EntryPoints, AreRecordedOnAfterALongJumpOutOfNew) {
  const Tape tape = tape_of_guest("longjmp_out");
  EXPECT_EQ(between_marks(tape.events).size(), 2000U);
  EXPECT_EQ(tape.count(format::Kind::operator_new, 78), 1000U);
}

TEST(EntryPoints, AreRecordedOnAfterALongJumpOutOfASignalHandlerInMalloc) {
  Command command = guest("jump_from_signal");
  command.preload = {guest_path("libraising_malloc.so")};
  Recording recording;
  record(command, recording);
  EXPECT_EQ(recording.outcome.status, 0) << recording.outcome.err;
  EXPECT_EQ(recording.outcome.out, "left malloc\nleft malloc\nleft malloc\nleft malloc\nleft malloc\n");
  const Tape tape = tape_of(recording.tapes, guest_path("jump_from_signal"));
  expect_sound(tape);
  EXPECT_EQ(between_marks(tape.events).size(), 2000U);
  EXPECT_EQ(tape.count(format::Kind::malloc, 79), 1000U);
}

}  // namespace
}  // namespace heaptape::e2e
