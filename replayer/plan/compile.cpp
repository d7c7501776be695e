#include "replayer/plan/compile.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "replayer/plan/assemble.h"
#include "replayer/plan/dependencies.h"
#include "replayer/plan/live_curve.h"

namespace heaptape::replayer {

using format::Event;
using format::EventFlag;
using format::ExitCode;
using format::failure;
using format::Failure;
using format::Kind;
using format::Result;
using format::SlotIndex;

namespace {

constexpr std::uint32_t no_thread = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t page_bytes = 4096;

bool is_aligned_form(const Event& e) {
  switch (e.kind) {
    case Kind::posix_memalign:
    case Kind::aligned_alloc:
    case Kind::memalign:
    case Kind::valloc:
    case Kind::pvalloc:
      return true;
    default:
      return e.alignment != 0;
  }
}

std::uint8_t alignment_log2(const Event& e) {
  std::uint64_t alignment = e.alignment;
  if (alignment == 0 && (e.kind == Kind::valloc || e.kind == Kind::pvalloc)) {
    alignment = page_bytes;
  }
  alignment = std::clamp<std::uint64_t>(alignment, sizeof(void*), std::uint64_t{1} << 63);
  return static_cast<std::uint8_t>(std::bit_width(alignment - 1));
}

OpCode acquire_code(const Event& e) {
  if (is_aligned_form(e)) {
    return OpCode::aligned;
  }
  return e.kind == Kind::calloc ? OpCode::calloc : OpCode::malloc;
}

class Compiler {
 public:
  explicit Compiler(const PlanOptions& options) : options_(options), curve_(options.cheap_instants) {
    pieces_.header.order = options.order;
  }

  Result<void> add(const Event& e);
  Result<Plan> finish();

 private:
  struct Live {  // by the event's slot
    std::uint64_t size_bytes = 0;
    std::uint32_t plan_slot = 0;
    bool is_live = false;
  };

  Result<void> acquire(const Event& e, OpCode code, std::uint8_t flags);
  Result<void> release(const Event& e);
  Result<void> resize(const Event& e);

  Result<Live*> live_slot(const Event& e, SlotIndex slot);
  Result<void> grow_by(const Event& e, std::uint64_t size_bytes);
  Result<std::uint32_t> plan_thread(const Event& e);
  // Appends an operation on a slot, behind the wait it needs.
  void append(const Event& e, std::uint32_t thread, PlanOp op);
  void push(std::uint32_t thread, const PlanOp& op);

  PlanOptions options_;
  PlanPieces pieces_;
  LiveCurve curve_;
  Dependencies dependencies_;
  std::vector<Live> live_;
  std::vector<std::uint32_t> plan_threads_;  // by ThreadIndex
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_objects_ = 0;
  std::uint64_t ops_done_ = 0;
};

Failure contradiction(const Event& e, std::string_view what) {
  return failure(ExitCode::bad_tape, "event {} ({}): {}; `heaptape check` tells what is wrong with the tape",
                 e.index, format::kind_name(e.kind), what);
}

Result<std::uint32_t> Compiler::plan_thread(const Event& e) {
  const auto index = options_.order == Order::serial ? 0U : static_cast<std::uint32_t>(e.thread);
  if (index >= plan_threads_.size()) {
    if (index >= max_plan_threads) {
      return contradiction(
          e, fmt::format("thread {}: more than {} threads cannot be replayed", index, max_plan_threads));
    }
    plan_threads_.resize(index + 1, no_thread);
  }
  if (plan_threads_[index] == no_thread) {
    plan_threads_[index] = static_cast<std::uint32_t>(pieces_.threads.size());
    pieces_.threads.emplace_back();
  }
  return plan_threads_[index];
}

Result<Compiler::Live*> Compiler::live_slot(const Event& e, SlotIndex slot) {
  const auto index = static_cast<std::uint32_t>(slot);
  if (index >= live_.size() || !live_[index].is_live) {
    return contradiction(e, "releases an object that is not live");
  }
  return &live_[index];
}

Result<void> Compiler::grow_by(const Event& e, std::uint64_t size_bytes) {
  PlanHeader& h = pieces_.header;
  if (__builtin_add_overflow(live_bytes_, size_bytes, &live_bytes_) ||
      __builtin_add_overflow(h.total_requested_bytes, size_bytes, &h.total_requested_bytes)) {
    return contradiction(e, "more memory than there are addresses");
  }
  h.largest_request_bytes = std::max(h.largest_request_bytes, size_bytes);
  h.peak_requested_bytes = std::max(h.peak_requested_bytes, live_bytes_);
  h.peak_live_objects = std::max(h.peak_live_objects, live_objects_);
  return {};
}

void Compiler::push(std::uint32_t thread, const PlanOp& op) { pieces_.threads[thread].ops.push_back(op); }

void Compiler::append(const Event& e, std::uint32_t thread, PlanOp op) {
  ++ops_done_;
  if (options_.order != Order::deps) {
    push(thread, op);
    if (pieces_.runs.empty() || pieces_.runs.back().thread != thread ||
        pieces_.runs.back().op_count == std::numeric_limits<std::uint32_t>::max()) {
      pieces_.runs.push_back({thread, 0});
    }
    ++pieces_.runs.back().op_count;
    curve_.add({ops_done_, e.index, e.time_ns, live_bytes_, live_objects_});
    return;
  }
  if (Position position; dependencies_.must_wait(op.slot, thread, &position)) {
    PlanOp wait{};
    wait.code = OpCode::wait;
    wait.slot = position.thread;
    wait.size_bytes = position.done;
    push(thread, wait);
    ++pieces_.header.wait_count;
    pieces_.threads[position.thread].published.push_back(position.done - 1);
  }
  push(thread, op);
  dependencies_.used(op.slot, {thread, pieces_.threads[thread].ops.size()});
}

Result<void> Compiler::acquire(const Event& e, OpCode code, std::uint8_t flags) {
  const auto index = static_cast<std::uint32_t>(e.slot);
  if (index > live_.size() || e.slot == SlotIndex::none) {
    return contradiction(e, "its slot is beyond the number of objects that are live");
  }
  if (index == live_.size()) {
    live_.emplace_back();
  }
  if (live_[index].is_live) {
    return contradiction(e, "acquires the place of an object that is still live");
  }
  const auto thread = plan_thread(e);
  if (!thread) {
    return Failure(thread.error());
  }
  ++live_objects_;
  HEAPTAPE_TRY(grow_by(e, e.size_bytes));
  Live& live = live_[index];
  live = {e.size_bytes, options_.order == Order::deps ? dependencies_.take_slot(*thread) : index, true};
  PlanOp op{};
  op.code = code;
  op.alignment_log2 = code == OpCode::aligned ? alignment_log2(e) : std::uint8_t{0};
  op.flags = flags;
  op.slot = live.plan_slot;
  op.size_bytes = e.size_bytes;
  append(e, *thread, op);
  return {};
}

Result<void> Compiler::release(const Event& e) {
  const auto live = live_slot(e, e.released_slot);
  const auto thread = plan_thread(e);
  if (!live || !thread) {
    return Failure(live ? thread.error() : live.error());
  }
  live_bytes_ -= (*live)->size_bytes;
  --live_objects_;
  (*live)->is_live = false;
  PlanOp op{};
  op.code = OpCode::free;
  op.slot = (*live)->plan_slot;
  append(e, *thread, op);
  if (options_.order == Order::deps) {
    dependencies_.give_slot(op.slot, *thread);
  }
  return {};
}

Result<void> Compiler::resize(const Event& e) {
  if (e.slot != e.released_slot) {
    return contradiction(e, "a realloc that does not keep its object's slot");
  }
  if (e.size_bytes == 0) {
    HEAPTAPE_TRY(release(e));
    return acquire(e, OpCode::malloc, 0);
  }
  const auto live = live_slot(e, e.released_slot);
  const auto thread = plan_thread(e);
  if (!live || !thread) {
    return Failure(live ? thread.error() : live.error());
  }
  live_bytes_ -= (*live)->size_bytes;
  HEAPTAPE_TRY(grow_by(e, e.size_bytes));
  (*live)->size_bytes = e.size_bytes;
  PlanOp op{};
  op.code = OpCode::realloc;
  op.slot = (*live)->plan_slot;
  op.size_bytes = e.size_bytes;
  append(e, *thread, op);
  return {};
}

Result<void> Compiler::add(const Event& e) {
  PlanHeader& h = pieces_.header;
  if (e.has(EventFlag::failed) || e.has(EventFlag::unfinished)) {
    ++h.skipped_failed;
    return {};
  }
  if (format::is_acquire(e.kind)) {
    return acquire(e, acquire_code(e), 0);
  }
  if (e.has(EventFlag::unknown_release)) {
    ++h.skipped_unknown;
    const bool acquires = format::is_realloc(e.kind) && !e.has(EventFlag::freeing_realloc);
    return acquires ? acquire(e, OpCode::malloc, 0) : Result<void>{};
  }
  if (format::is_release(e.kind)) {
    return e.has(EventFlag::null_argument) ? Result<void>{} : release(e);
  }
  if (format::is_realloc(e.kind)) {
    if (e.has(EventFlag::freeing_realloc)) {
      ++h.freeing_reallocs;
      return release(e);
    }
    return e.has(EventFlag::null_argument) ? acquire(e, OpCode::realloc, op_realloc_null) : resize(e);
  }
  return {};  // malloc_trim, and kinds of a newer format: nothing to replay
}

Result<Plan> Compiler::finish() {
  if (pieces_.threads.empty()) {
    pieces_.threads.emplace_back();  // an empty tape is a thread that does nothing
  }
  pieces_.header.slot_count =
      options_.order == Order::deps ? dependencies_.slot_count() : static_cast<std::uint32_t>(live_.size());
  if (options_.order != Order::deps) {
    pieces_.instants = curve_.choose_instants(options_.exact_instants);
  }
  return PlanAssembler::assemble(std::move(pieces_));
}

}  // namespace

Result<Plan> compile_plan(format::EventCursor& events, const PlanOptions& options) {
  try {
    Compiler compiler(options);
    while (true) {
      const auto batch = events.next();
      if (!batch) {
        return Failure(batch.error());
      }
      if (batch->empty()) {
        return compiler.finish();
      }
      for (const Event& e : *batch) {
        HEAPTAPE_TRY(compiler.add(e));
      }
    }
  } catch (const std::bad_alloc&) {
    return failure(ExitCode::system, "plan: not enough memory for it; replay a slice of the tape");
  }
}

}  // namespace heaptape::replayer
