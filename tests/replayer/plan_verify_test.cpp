// The verifier must notice every way in which a plan can be wrong: each test breaks a sound one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "replayer/plan/compile.h"
#include "replayer/plan/verify.h"
#include "tests/replayer/plan_events.h"

namespace heaptape::replayer {
namespace {

using testing::HasSubstr;

Plan sound_plan(Order order) {
  format::VectorCursor cursor(random_tape(11, 500, 3, 30).events());
  auto plan = compile_plan(cursor, {.order = order});
  EXPECT_TRUE(plan && verify_plan(*plan));
  return std::move(*plan);
}

// The plan's own memory, writable: what a bug in the compiler would write.
PlanOp* ops_of(const Plan& plan) { return const_cast<PlanOp*>(plan.ops().data()); }
PlanHeader* header_of(const Plan& plan) { return const_cast<PlanHeader*>(&plan.header()); }

PlanOp* first(const Plan& plan, OpCode code) {
  for (std::size_t i = 0; i < plan.ops().size(); ++i) {
    if (plan.ops()[i].code == code) {
      return ops_of(plan) + i;
    }
  }
  ADD_FAILURE() << "no such operation";
  return nullptr;
}

std::string complaint(const Plan& plan) {
  const auto r = verify_plan(plan);
  return r ? "sound" : r.error().message();
}

TEST(PlanVerify, NoticesASlotThatIsFilledTwice) {
  const Plan plan = sound_plan(Order::serial);
  PlanOp* op = first(plan, OpCode::free);
  op->code = OpCode::malloc;
  EXPECT_THAT(complaint(plan), HasSubstr("fills a slot that is in use"));
}

TEST(PlanVerify, NoticesAFreeOfAnEmptySlot) {
  const Plan plan = sound_plan(Order::total);
  PlanOp* op = first(plan, OpCode::malloc);
  op->code = OpCode::free;
  op->size_bytes = 0;
  EXPECT_THAT(complaint(plan), HasSubstr("uses an empty slot"));
}

TEST(PlanVerify, NoticesSlotsAndOperationsThatDoNotExist) {
  const Plan plan = sound_plan(Order::serial);
  PlanOp* op = first(plan, OpCode::malloc);
  op->slot = plan.header().slot_count;
  EXPECT_THAT(complaint(plan), HasSubstr("outside the table"));
  op->code = OpCode::wait;
  op->slot = 0;
  EXPECT_THAT(complaint(plan), HasSubstr("means nothing"));
}

TEST(PlanVerify, NoticesTotalsThatAreNotTrue) {
  const Plan plan = sound_plan(Order::serial);
  header_of(plan)->peak_requested_bytes += 1;
  EXPECT_THAT(complaint(plan), HasSubstr("totals"));
}

TEST(PlanVerify, NoticesAnInstantThatLies) {
  const Plan plan = sound_plan(Order::total);
  const_cast<PlanInstant&>(plan.instants()[3]).requested_bytes += 1;
  EXPECT_THAT(complaint(plan), HasSubstr("instant 3"));
}

TEST(PlanVerify, NoticesAMissingWait) {
  const Plan plan = sound_plan(Order::deps);
  // A wait that asks for less than it should is as good as none.
  PlanOp* wait = first(plan, OpCode::wait);
  const std::uint32_t waiter = wait < ops_of(plan) + plan.threads()[1].first_op ? 0 : 1;
  ASSERT_NE(wait->slot, waiter);
  const PlanThread target = plan.threads()[wait->slot];
  ops_of(plan)[target.first_op].flags |= op_publish;
  ASSERT_GT(wait->size_bytes, 1U);
  wait->size_bytes = 1;
  EXPECT_THAT(complaint(plan), HasSubstr("without waiting for its last use"));
}

TEST(PlanVerify, NoticesAWaitThatNobodyAnswers) {
  const Plan plan = sound_plan(Order::deps);
  PlanOp* wait = first(plan, OpCode::wait);
  ops_of(plan)[plan.threads()[wait->slot].first_op + wait->size_bytes - 1].flags = 0;
  EXPECT_THAT(complaint(plan), HasSubstr("not published"));
}

TEST(PlanVerify, NoticesThreadsThatWaitForEachOther) {
  // Two threads, each handing one block to the other.
  Tape tape;
  const auto a = tape.allocate(0, 1);
  const auto b = tape.allocate(1, 2);
  tape.free(1, a);
  tape.free(0, b);
  format::VectorCursor cursor(tape.events());
  const auto plan = compile_plan(cursor, {.order = Order::deps});
  ASSERT_TRUE(plan && verify_plan(*plan));
  // malloc, wait, free on both: moving each malloc behind its thread's wait closes the circle.
  for (std::uint32_t t = 0; t < 2; ++t) {
    PlanOp* mine = ops_of(*plan) + plan->threads()[t].first_op;
    ASSERT_EQ(mine[1].code, OpCode::wait);
    std::swap(mine[0], mine[1]);
    mine[0].size_bytes = 2;
  }
  EXPECT_THAT(complaint(*plan), HasSubstr("waits for ever"));
}

TEST(PlanVerify, AHeaderThatPointsOutsideItsBlockIsNotAdopted) {
  const Plan plan = sound_plan(Order::serial);
  header_of(plan)->ops_offset = plan.header().total_bytes;
  EXPECT_FALSE(Plan::adopt(format::Descriptor(::dup(plan.fd()))));
}

}  // namespace
}  // namespace heaptape::replayer
