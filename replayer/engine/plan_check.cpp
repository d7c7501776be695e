#include "replayer/engine/plan_check.h"

namespace heaptape::replayer::engine {

namespace {

template <class Element>
bool find(const PlanHeader& header, std::uint64_t offset, std::uint64_t count,
          const Element*& elements) noexcept {
  if (offset % alignof(Element) != 0 || offset > header.total_bytes) return false;
  if (count > (header.total_bytes - offset) / sizeof(Element)) return false;
  elements = reinterpret_cast<const Element*>(reinterpret_cast<const char*>(&header) + offset);
  return true;
}

bool check_op(const PlanHeader& header, const PlanOp& op, Demand& demand) noexcept {
  switch (op.code) {
    case OpCode::aligned: {
      if (op.alignment_log2 > 46) return false;
      const std::size_t alignment = std::size_t{1} << op.alignment_log2;
      demand.aligned = true;
      if (alignment > demand.largest_alignment_bytes) demand.largest_alignment_bytes = alignment;
      return op.slot < header.slot_count;
    }
    case OpCode::malloc:
    case OpCode::calloc:
    case OpCode::realloc:
    case OpCode::free:
      return op.slot < header.slot_count;
    case OpCode::wait:
      return header.order == Order::deps && op.slot < header.thread_count;
  }
  return false;
}

bool check_ops(const PlanView& plan, Demand& demand, Text& message) noexcept {
  std::uint64_t total = 0;
  for (std::uint32_t thread = 0; thread < plan.header->thread_count; ++thread) {
    const PlanThread& part = plan.threads[thread];
    if (part.first_op > plan.header->op_count || part.op_count > plan.header->op_count - part.first_op) {
      message << "plan: the ops of thread " << thread << " lie outside of the plan";
      return false;
    }
    total += part.op_count;
  }
  if (total != plan.header->op_count) {
    message << "plan: its threads have " << total << " ops, its header says " << plan.header->op_count;
    return false;
  }
  for (std::uint64_t i = 0; i < plan.header->op_count; ++i) {
    if (check_op(*plan.header, plan.ops[i], demand)) continue;
    message << "plan: op " << i << " has an unknown code, slot, thread or alignment";
    return false;
  }
  return true;
}

bool check_runs(const PlanView& plan, Text& message) noexcept {
  const PlanHeader& header = *plan.header;
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < header.run_count; ++i) {
    if (plan.runs[i].thread >= header.thread_count) {
      message << "plan: run " << i << " names a thread that does not exist";
      return false;
    }
    total += plan.runs[i].op_count;
  }
  if (header.order != Order::deps && total != header.op_count) {
    message << "plan: its runs have " << total << " ops, its header says " << header.op_count;
    return false;
  }
  std::uint64_t previous = 0;
  for (std::uint64_t i = 0; i < header.instant_count; ++i) {
    const std::uint64_t run = plan.instants[i].run;
    if (run > header.run_count || run < previous) {
      message << "plan: instant " << i << " is out of order";
      return false;
    }
    previous = run;
  }
  return true;
}

}  // namespace

bool check_plan(const void* block, std::size_t size_bytes, PlanView& plan, Demand& demand,
                Text& message) noexcept {
  const auto* const header = static_cast<const PlanHeader*>(block);
  if (size_bytes < sizeof(PlanHeader) || header->magic != plan_magic) {
    message << "plan: not a replay plan";
    return false;
  }
  if (header->version != plan_version) {
    message << "plan: version " << header->version << ", this engine reads version " << plan_version;
    return false;
  }
  if (header->total_bytes > size_bytes || header->thread_count == 0 ||
      static_cast<std::uint32_t>(header->order) > static_cast<std::uint32_t>(Order::deps) ||
      (header->order == Order::serial && header->thread_count != 1)) {
    message << "plan: its header contradicts itself";
    return false;
  }
  plan.header = header;
  if (!find(*header, header->threads_offset, header->thread_count, plan.threads) ||
      !find(*header, header->ops_offset, header->op_count, plan.ops) ||
      !find(*header, header->runs_offset, header->run_count, plan.runs) ||
      !find(*header, header->instants_offset, header->instant_count, plan.instants)) {
    message << "plan: a part lies outside of it";
    return false;
  }
  return check_ops(plan, demand, message) && check_runs(plan, message);
}

}  // namespace heaptape::replayer::engine
