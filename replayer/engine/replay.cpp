#include "replayer/engine/replay.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "replayer/engine/crash.h"
#include "replayer/engine/purge.h"

namespace heaptape::replayer::engine {

namespace {

constexpr std::size_t stack_bytes = std::size_t{256} * 1024;  // thread-local storage included
constexpr std::size_t warm_stack_bytes = std::size_t{64} * 1024;

std::uint64_t process_cpu_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t process_page_faults() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
}

// One processor for one running thread. After the candidate has been loaded: some size themselves
// by the processors that they may use.
void stay_on_this_processor() noexcept {
  const int processor = ::sched_getcpu();
  if (processor < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(processor), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

void warm_stack() noexcept {
  volatile char bytes[warm_stack_bytes];
  for (std::size_t at = 0; at < sizeof bytes; at += page_bytes) bytes[at] = 0;
}

}  // namespace

ReplayRun::ReplayRun(const EngineRequest& request, const PlanView& plan, const Candidate& candidate,
                     OwnMemory& memory, EngineResult& result, InstantResult* instants) noexcept
    : request_(request),
      plan_(plan),
      candidate_(candidate),
      memory_(memory),
      result_(result),
      instants_(instants),
      footprint_(memory),
      ledger_(nullptr, nullptr),
      slot_ledger_(nullptr, nullptr) {}

bool ReplayRun::prepare(Text& message) noexcept {
  const PlanHeader& header = *plan_.header;
  const std::size_t slots = header.slot_count;
  replay_.candidate = &candidate_;
  replay_.slots = static_cast<void**>(memory_.make(slots * sizeof(void*), Touching::now));
  replay_.lanes = static_cast<Lane*>(memory_.make(header.thread_count * sizeof(Lane), Touching::now));
  workers_ = static_cast<Worker*>(memory_.make(header.thread_count * sizeof(Worker), Touching::now));
  if (replay_.slots == nullptr || replay_.lanes == nullptr || workers_ == nullptr) {
    message << "no memory for " << std::uint64_t{slots} << " slots and " << std::uint64_t{header.thread_count}
            << " threads";
    return false;
  }
  if (space()) {
    sizes_ = static_cast<SlotSizes*>(memory_.make(slots * sizeof(SlotSizes), Touching::now));
    ledger_ = Ledger(sizes_, candidate_.usable);
    slot_ledger_ = SlotLedger(sizes_, candidate_.usable);
    if (sizes_ == nullptr || !ledger_.prepare(memory_, slots)) {
      message << "no memory for the sizes of " << std::uint64_t{slots} << " blocks";
      return false;
    }
  }
  if (!footprint_.prepare(memory_)) {
    message << "cannot read /proc/self/smaps and maps: is /proc mounted?";
    return false;
  }
  for (std::uint32_t i = 0; i < header.thread_count; ++i) {
    Lane& lane = *new (&replay_.lanes[i]) Lane;
    lane.thread = i;
    lane.begin = lane.next = plan_.ops + plan_.threads[i].first_op;
    lane.end = lane.begin + plan_.threads[i].op_count;
    workers_[i] = {.run = this, .lane = &lane};
  }
  prepare_waiting();
  return make_threads(message);
}

bool ReplayRun::make_threads(Text& message) noexcept {
  const std::size_t threads = plan_.header->thread_count;
  stacks_ = static_cast<char*>(memory_.make((threads + 1) * (page_bytes + stack_bytes), Touching::on_demand));
  if (stacks_ == nullptr || !prepare_crash_stacks(memory_, plan_.header->thread_count)) {
    message << "no memory for the stacks of " << std::uint64_t{threads} << " threads";
    return false;
  }
  for (std::size_t i = 1; i < threads; ++i) {
    if (!make_thread(i, &work, &workers_[i], message)) return false;
  }
  return !watched() || make_thread(threads, &watch, this, message);
}

bool ReplayRun::make_thread(std::size_t index, void* (*run)(void*), void* argument, Text& message) noexcept {
  char* const low = stacks_ + index * (page_bytes + stack_bytes);
  ::mprotect(low, page_bytes, PROT_NONE);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, low + page_bytes, stack_bytes);
  pthread_t thread{};
  const int status = ::pthread_create(&thread, &attributes, run, argument);
  ::pthread_attr_destroy(&attributes);
  if (status == 0) return true;
  message << "cannot make thread " << std::uint64_t{index} << " of "
          << std::uint64_t{plan_.header->thread_count} << ": error " << static_cast<std::uint64_t>(status);
  return false;
}

void* ReplayRun::work(void* argument) noexcept {
  const Worker& worker = *static_cast<Worker*>(argument);
  ReplayRun& run = *worker.run;
  Lane& lane = *worker.lane;
  warm_stack();
  adopt_null_scratch(lane.thread);
  watch_for_crash(lane, run.plan_.ops);
  run.ready_.arrive();
  run.go_.wait();
  run.run_lane(lane);
  run.done_.arrive();
  // Opened by measure_purged(), if at all; the process ends with this thread still here.
  Waiting not_counted;
  lane.gate.pass(not_counted);
  static_cast<void>(purge(lane.thread));
  run.purged_.arrive();
  for (;;) ::pause();
}

void ReplayRun::execute() noexcept {
  const PlanHeader& header = *plan_.header;
  warm_stack();
  adopt_null_scratch(0);
  watch_for_crash(replay_.lanes[0], plan_.ops);
  ready_.wait_for(header.thread_count - 1 + (watched() ? 1 : 0));
  if (header.order != Order::deps) {
    if (header.order == Order::serial) stay_on_this_processor();
    replay_.lanes[header.run_count == 0 ? 0 : plan_.runs[0].thread].gate.open();
  }
  read_fixed();
  const std::uint64_t faults = process_page_faults();
  const std::uint64_t cpu_ns = process_cpu_ns();
  if (candidate_.mark != nullptr) candidate_.mark(1);
  const std::uint64_t begin_ns = now_ns();
  go_.open();
  run_lane(replay_.lanes[0]);
  done_.wait_for(header.thread_count - 1);
  if (candidate_.mark != nullptr) candidate_.mark(0);
  result_.cpu_ns = process_cpu_ns() - cpu_ns;
  result_.page_faults = process_page_faults() - faults;
  if (space()) {
    if (watched()) {
      stop_watching_.store(1, std::memory_order_release);
      watch_ended_.wait_for(1);
      count_live_blocks();
      static_cast<void>(take(true));
      take_due_instants();
    }
    measure_purged();
  }
  sum_up(begin_ns);
}

void ReplayRun::run_lane(Lane& lane) noexcept {
  if (plan_.header->order == Order::deps) {
    if (space()) {
      space_deps_loop(request_.touch)(replay_, lane, slot_ledger_, lane.begin, lane.end);
    } else {
      NoObserver none;
      timed_loop(request_.touch, Order::deps)(replay_, lane, none, lane.begin, lane.end);
    }
    lane.next = lane.end;
    lane.end_ns = now_ns();
  } else {
    run_with_baton(lane);
  }
}

void ReplayRun::run_with_baton(Lane& lane) noexcept {
  for (;;) {
    Waiting waiting;
    lane.gate.pass(waiting);
    if (finished_) return;
    lane.waiting.waits += waiting.waits;
    lane.waiting.waited_ns += waiting.waited_ns;
    while (run_ < plan_.header->run_count && plan_.runs[run_].thread == lane.thread) run_turn(lane);
    if (run_ == plan_.header->run_count) break;
    ++result_.handovers;
    replay_.lanes[plan_.runs[run_].thread].gate.open();
  }
  lane.end_ns = now_ns();
  if (space()) take_due_instants();
  finished_ = true;
  for (std::uint32_t i = 0; i < plan_.header->thread_count; ++i) {
    if (i != lane.thread) replay_.lanes[i].gate.open();
  }
}

// The next run; in time runs with those of the same thread that follow.
void ReplayRun::run_turn(Lane& lane) noexcept {
  const PlanOp* const begin = lane.next;
  std::uint64_t op_count = plan_.runs[run_++].op_count;
  if (space()) {
    --run_;
    take_due_instants();
    ++run_;
    space_loop(request_.touch)(replay_, lane, ledger_, begin, begin + op_count);
  } else {
    while (run_ < plan_.header->run_count && plan_.runs[run_].thread == lane.thread)
      op_count += plan_.runs[run_++].op_count;
    NoObserver none;
    timed_loop(request_.touch, Order::serial)(replay_, lane, none, begin, begin + op_count);
  }
  lane.next = begin + op_count;
  ops_done_ += op_count;
  order_digest_.add(lane.thread, static_cast<std::uint64_t>(begin - plan_.ops), op_count);
}

void ReplayRun::sum_up(std::uint64_t begin_ns) noexcept {
  std::uint64_t end_ns = begin_ns;
  std::uint64_t digest = plan_.header->order == Order::deps ? digest_seed : order_digest_.finish();
  for (std::uint32_t i = 0; i < plan_.header->thread_count; ++i) {
    const Lane& lane = replay_.lanes[i];
    if (lane.end_ns > end_ns) end_ns = lane.end_ns;
    result_.failed_allocations += lane.failed_allocations;
    result_.misaligned += lane.misaligned;
    result_.skipped_ops += lane.skipped_ops;
    result_.waits += lane.waiting.waits;
    result_.waited_ns += lane.waiting.waited_ns;
    result_.ops_executed += static_cast<std::uint64_t>(lane.next - lane.begin);
    if (plan_.header->order == Order::deps)
      digest = mix(mix(digest, lane.digest), static_cast<std::uint64_t>(lane.next - lane.begin));
  }
  result_.ops_executed -= plan_.header->wait_count;
  result_.elapsed_ns = end_ns - begin_ns;
  result_.order_digest = digest;
  result_.has_usable_size = candidate_.usable != nullptr ? 1 : 0;
}

}  // namespace heaptape::replayer::engine
