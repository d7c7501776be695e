#include "replayer/engine/crash.h"

#include <signal.h>

#include "replayer/engine/text.h"

namespace heaptape::replayer::engine {

namespace {

constexpr std::size_t signal_stack_bytes = std::size_t{32} * 1024;
constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

// A signal handler has no argument of ours: what it needs is process-wide, set before the start.
constinit EngineResult* crash_result = nullptr;
constinit char* signal_stacks = nullptr;
constinit thread_local const Lane* crash_lane = nullptr;
constinit thread_local const PlanOp* crash_ops = nullptr;

void on_crash(int signal, siginfo_t* info, void*) {
  Text message(crash_result->message, sizeof crash_result->message);
  message << "signal " << static_cast<std::uint64_t>(signal);
  if (signal == SIGSEGV || signal == SIGBUS)
    message << " at address "
            << "",
        message.hex(reinterpret_cast<std::uintptr_t>(info->si_addr));
  const Lane* const lane = crash_lane;
  if (lane == nullptr) {
    message << " outside of the replay's threads";
  } else if (lane->current != nullptr) {
    message << " in op " << static_cast<std::uint64_t>(lane->current - crash_ops) << " of the plan, thread "
            << lane->thread;
  } else {
    message << " in thread " << lane->thread << " at or after op "
            << static_cast<std::uint64_t>(lane->next - crash_ops);
  }
  // The handler was installed for one signal; the second takes the usual course.
  ::raise(signal);
}

}  // namespace

bool prepare_crash_stacks(OwnMemory& memory, std::uint32_t thread_count) noexcept {
  signal_stacks = static_cast<char*>(memory.make(thread_count * signal_stack_bytes, Touching::on_demand));
  return signal_stacks != nullptr;
}

void report_crashes_in(EngineResult& result) noexcept {
  crash_result = &result;
  for (const int signal : fatal_signals) {
    struct sigaction action {};
    action.sa_sigaction = &on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

void watch_for_crash(const Lane& lane, const PlanOp* ops) noexcept {
  crash_lane = &lane;
  crash_ops = ops;
  stack_t stack{};
  stack.ss_sp = signal_stacks + lane.thread * signal_stack_bytes;
  stack.ss_size = signal_stack_bytes;
  ::sigaltstack(&stack, nullptr);
}

}  // namespace heaptape::replayer::engine
