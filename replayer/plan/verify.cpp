#include "replayer/plan/verify.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heaptape::replayer {

using format::ExitCode;
using format::failure;
using format::Failure;
using format::Result;

namespace {

struct Place {
  std::uint32_t thread;
  std::uint64_t position;  // in the thread's operations
};

Failure unsound(std::string_view what) {
  return failure(ExitCode::system, "the plan is unsound: {}; this is a bug of heaptape, please report it",
                 what);
}

Failure unsound(Place at, std::string_view what) {
  return unsound(fmt::format("thread {}, operation {}: {}", at.thread, at.position, what));
}

// What the operations so far made of the slots and the totals.
class Interpreter {
 public:
  explicit Interpreter(const Plan& plan) : slots_(plan.header().slot_count) {}

  // Executes one call (no wait).
  Result<void> execute(const PlanOp& op, Place at) {
    if (op.slot >= slots_.size()) {
      return unsound(at, "a slot outside the table");
    }
    if (op.code < OpCode::malloc || op.code > OpCode::free || op.alignment_log2 > 63 ||
        (op.code != OpCode::aligned && op.alignment_log2 != 0) ||
        (op.code == OpCode::free && op.size_bytes != 0) ||
        ((op.flags & op_realloc_null) != 0 && op.code != OpCode::realloc)) {
      return unsound(at, "an operation that means nothing");
    }
    Slot& slot = slots_[op.slot];
    const bool needs_live =
        op.code == OpCode::free || (op.code == OpCode::realloc && (op.flags & op_realloc_null) == 0);
    if (slot.is_live != needs_live) {
      return unsound(at, needs_live ? "uses an empty slot" : "fills a slot that is in use");
    }
    if (needs_live && op.code == OpCode::realloc && op.size_bytes == 0) {
      return unsound(at, "a realloc to size 0, which allocators understand differently");
    }
    if (needs_live) {
      live_bytes_ -= slot.size_bytes;
      --live_objects_;
    }
    slot.is_live = op.code != OpCode::free;
    if (slot.is_live) {
      slot.size_bytes = op.size_bytes;
      ++live_objects_;
      live_bytes_ += op.size_bytes;
      total_ += op.size_bytes;
      largest_ = std::max(largest_, op.size_bytes);
      peak_bytes_ = std::max(peak_bytes_, live_bytes_);
      peak_objects_ = std::max(peak_objects_, live_objects_);
    }
    ++calls_;
    return {};
  }
  // The last use of a slot; position = operations done by then.
  [[nodiscard]] Place& last_use(std::uint32_t slot) { return slots_[slot].last; }
  [[nodiscard]] bool was_used(std::uint32_t slot) const { return slots_[slot].last.position != 0; }

  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  [[nodiscard]] bool agrees_with(const PlanInstant& i) const {
    return i.op_index == calls_ && i.requested_bytes == live_bytes_ && i.live_objects == live_objects_;
  }
  // Peaks depend on the order of execution, so `deps` cannot check them.
  [[nodiscard]] bool agrees_with(const PlanHeader& h) const {
    const bool sums = h.total_requested_bytes == total_ && h.largest_request_bytes == largest_ &&
                      h.op_count - h.wait_count == calls_;
    const bool peaks = h.peak_requested_bytes == peak_bytes_ && h.peak_live_objects == peak_objects_;
    return sums && (peaks || h.order == Order::deps);
  }

 private:
  struct Slot {
    Place last{0, 0};
    std::uint64_t size_bytes = 0;
    bool is_live = false;
  };
  std::vector<Slot> slots_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_objects_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t largest_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t peak_objects_ = 0;
  std::uint64_t calls_ = 0;
};

Result<void> verify_parts(const Plan& plan) {
  const PlanHeader& h = plan.header();
  std::uint64_t next = 0;
  for (const PlanThread& t : plan.threads()) {
    if (t.first_op != next || t.op_count > h.op_count - next) {
      return unsound("the threads' operations are not one after the other");
    }
    next += t.op_count;
  }
  if (next != h.op_count || h.wait_count > h.op_count || h.thread_count == 0) {
    return unsound("the threads do not have all operations");
  }
  // serial and total take their slots from the tape, deps its own.
  const bool is_deps = h.order == Order::deps;
  if (is_deps ? h.slot_count != h.peak_live_objects : h.slot_count < h.peak_live_objects) {
    return unsound("the slot table is not as long as the peak of live objects");
  }
  if (is_deps ? h.run_count != 0 || h.instant_count != 0 : h.wait_count != 0) {
    return unsound("runs or waits that its order does not have");
  }
  return {};
}

// serial, total: executes the runs one after the other.
Result<void> verify_runs(const Plan& plan, Interpreter& interpreter) {
  std::vector<std::uint64_t> done(plan.header().thread_count, 0);
  const auto runs = plan.runs();
  const auto instants = plan.instants();
  std::size_t next_instant = 0;
  for (std::size_t r = 0; r <= runs.size(); ++r) {
    for (; next_instant < instants.size() && instants[next_instant].run == r; ++next_instant) {
      if (!interpreter.agrees_with(instants[next_instant])) {
        return unsound(fmt::format("instant {} does not tell what is live there", next_instant));
      }
    }
    if (r == runs.size()) {
      break;
    }
    const PlanRun run = runs[r];
    if (run.thread >= done.size() || run.op_count == 0 ||
        run.op_count > plan.threads()[run.thread].op_count - done[run.thread]) {
      return unsound(fmt::format("run {} does not fit its thread", r));
    }
    for (const PlanOp& op : plan.ops(run.thread).subspan(done[run.thread], run.op_count)) {
      HEAPTAPE_TRY(interpreter.execute(op, {run.thread, done[run.thread]++}));
    }
  }
  if (next_instant != instants.size()) {
    return unsound("an instant outside the run");
  }
  if (interpreter.calls() != plan.header().op_count) {
    return unsound("the runs do not have all operations");
  }
  return {};
}

// deps: finds one schedule that executes everything, each thread as far as it can go.
class Schedule {
 public:
  Schedule(const Plan& plan, Interpreter& interpreter)
      : plan_(plan),
        interpreter_(interpreter),
        done_(plan.header().thread_count, 0),
        sleepers_(done_.size()) {}

  Result<void> run() {
    for (std::uint32_t t = 0; t < done_.size(); ++t) {
      ready_.push_back(t);
    }
    while (!ready_.empty()) {
      const std::uint32_t thread = ready_.back();
      ready_.pop_back();
      HEAPTAPE_TRY(advance(thread));
    }
    for (std::uint32_t t = 0; t < done_.size(); ++t) {
      if (done_[t] != plan_.threads()[t].op_count) {
        return unsound({t, done_[t]}, "waits for ever");
      }
    }
    return {};
  }

 private:
  struct Sleeper {
    std::uint32_t thread;
    std::uint64_t position;
  };

  Result<void> advance(std::uint32_t thread) {
    const auto ops = plan_.ops(thread);
    for (std::uint64_t& position = done_[thread]; position < ops.size();) {
      const PlanOp& op = ops[position];
      if (op.code == OpCode::wait) {
        HEAPTAPE_TRY(check_wait(op, {thread, position}));
        if (done_[op.slot] < op.size_bytes) {
          sleepers_[op.slot].push_back({thread, op.size_bytes});
          return {};
        }
        std::uint64_t& known = waited_[pair(thread, op.slot)];
        known = std::max(known, op.size_bytes);
      } else {
        HEAPTAPE_TRY(check_use(op, {thread, position}));
        HEAPTAPE_TRY(interpreter_.execute(op, {thread, position}));
        interpreter_.last_use(op.slot) = {thread, position + 1};
      }
      ++position;
      if ((op.flags & op_publish) != 0) {
        wake(thread);
      }
    }
    return {};
  }

  [[nodiscard]] Result<void> check_wait(const PlanOp& op, Place at) const {
    if (op.slot >= done_.size() || op.slot == at.thread || op.alignment_log2 != 0 || op.size_bytes == 0 ||
        op.size_bytes > plan_.threads()[op.slot].op_count) {
      return unsound(at, "waits for an operation that does not exist");
    }
    if ((plan_.ops(op.slot)[op.size_bytes - 1].flags & op_publish) == 0) {
      return unsound(at, "waits for an operation that is not published");
    }
    return {};
  }

  [[nodiscard]] Result<void> check_use(const PlanOp& op, Place at) {
    if (op.slot >= plan_.header().slot_count || !interpreter_.was_used(op.slot)) {
      return {};  // execute says what is wrong with the first
    }
    const Place last = interpreter_.last_use(op.slot);
    if (last.thread != at.thread) {
      const auto known = waited_.find(pair(at.thread, last.thread));
      if (known == waited_.end() || known->second < last.position) {
        return unsound(at, "uses a slot without waiting for its last use");
      }
    }
    return {};
  }

  void wake(std::uint32_t thread) {
    auto& sleepers = sleepers_[thread];
    std::erase_if(sleepers, [&](const Sleeper& s) {
      if (s.position > done_[thread]) {
        return false;
      }
      ready_.push_back(s.thread);
      return true;
    });
  }

  static std::uint64_t pair(std::uint32_t waiter, std::uint32_t target) {
    return (std::uint64_t{waiter} << 32) | target;
  }

  const Plan& plan_;
  Interpreter& interpreter_;
  std::vector<std::uint64_t> done_;
  std::vector<std::vector<Sleeper>> sleepers_;  // by the thread they wait for
  std::vector<std::uint32_t> ready_;
  std::unordered_map<std::uint64_t, std::uint64_t> waited_;
};

}  // namespace

Result<void> verify_plan(const Plan& plan) {
  HEAPTAPE_TRY(verify_parts(plan));
  Interpreter interpreter(plan);
  const bool is_deps = plan.header().order == Order::deps;
  HEAPTAPE_TRY(is_deps ? Schedule(plan, interpreter).run() : verify_runs(plan, interpreter));
  if (!interpreter.agrees_with(plan.header())) {
    return unsound("the header's totals are not those of the operations");
  }
  return {};
}

}  // namespace heaptape::replayer
