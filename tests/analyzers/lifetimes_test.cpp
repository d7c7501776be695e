#include "analyzers/lifetimes.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/analyzers/scenario.h"

namespace heaptape::analyzers {
namespace {

using format::Kind;
using testing::Scenario;

std::unique_ptr<LifetimesAnalysis> analyse(Scenario& s) {
  format::VectorCursor cursor(s.events());
  auto analysis = std::make_unique<LifetimesAnalysis>();
  EXPECT_TRUE(run(cursor, {analysis.get()}));
  return analysis;
}

TEST(Lifetimes, ABlockReleasedByTheNextCallIsOneCallOld) {
  Scenario s;
  const auto a = s.acquire(8);
  s.after(250).release(a);
  const auto lifetimes = analyse(s);
  EXPECT_EQ(lifetimes->result().calls.quantile(0.5), 1U);
  EXPECT_EQ(lifetimes->result().nanoseconds.largest(), 250U);
}

TEST(Lifetimes, AReallocCarriesABlockOn) {
  Scenario s;
  const auto a = s.acquire(8);
  const auto b = s.after(10).resize(a, 16);
  const auto c = s.after(10).resize(b, 32, true);
  s.after(10).release(c);
  const Lifetimes l = analyse(s)->result();
  EXPECT_EQ(l.released, 1U);
  EXPECT_EQ(l.calls.largest(), 3U);
  EXPECT_EQ(l.nanoseconds.largest(), 30U);
  EXPECT_EQ(l.released_bytes, 32U);
}

TEST(Lifetimes, WhoAcquiredABlockLastDecidesWhetherItsReleaseIsForeign) {
  Scenario s;
  const auto a = s.on_thread(1).acquire(8);
  const auto b = s.acquire(8);
  const auto c = s.on_thread(2).resize(a, 9);  // foreign resize; now thread 2's
  s.release(c);                                // its own
  s.release(b);                                // foreign
  const Lifetimes l = analyse(s)->result();
  EXPECT_EQ(l.resized_by_other_thread, 1U);
  EXPECT_EQ(l.released_by_other_thread, 1U);
}

TEST(Lifetimes, AReallocToNothingReleases) {
  Scenario s;
  s.resize_to_nothing(s.acquire(8));
  EXPECT_EQ(analyse(s)->result().released, 1U);
}

TEST(Lifetimes, AnImpliedReleaseHasNoAge) {
  Scenario s;
  s.imply_release(s.acquire(8));
  const Lifetimes l = analyse(s)->result();
  EXPECT_EQ(l.released, 0U);
  EXPECT_EQ(l.calls.count(), 0U);
  EXPECT_EQ(l.released_by_implication, 1U);
}

TEST(Lifetimes, DeleteAfterMallocIsAMismatchAndItsLikesAre) {
  Scenario s;
  s.release(s.acquire(8, Kind::malloc), Kind::operator_delete);
  s.release(s.acquire(8, Kind::operator_new), Kind::free);
  s.release(s.acquire(8, Kind::operator_new_array), Kind::operator_delete_sized);
  EXPECT_EQ(analyse(s)->result().mismatched, 3U);
}

TEST(Lifetimes, MatchingFamiliesAreNoMismatch) {
  Scenario s;
  s.release(s.acquire(8, Kind::posix_memalign), Kind::free_sized);
  s.release(s.acquire(8, Kind::operator_new_nothrow), Kind::operator_delete_sized);
  s.release(s.acquire(8, Kind::operator_new_array), Kind::operator_delete_array);
  s.release(s.resize(s.acquire(8, Kind::calloc), 9), Kind::cfree);
  EXPECT_EQ(analyse(s)->result().mismatched, 0U);
}

TEST(Lifetimes, AnAgeIsNeverNegative) {
  Scenario s;
  const auto a = s.after(1000).acquire(8);
  s.after(-10).release(a);
  EXPECT_EQ(analyse(s)->result().nanoseconds.largest(), 0U);
}

}  // namespace
}  // namespace heaptape::analyzers
