// heaptape-engine: runs one plan against one allocator in this process, see protocol.h.
//
// Exit status 0: the result has been written (its status may still be a refusal); 2: wrong usage.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "replayer/engine/candidate.h"
#include "replayer/engine/crash.h"
#include "replayer/engine/own_memory.h"
#include "replayer/engine/plan_check.h"
#include "replayer/engine/protocol.h"
#include "replayer/engine/replay.h"
#include "replayer/engine/settle.h"

namespace heaptape::replayer::engine {

namespace {

int descriptor_of(const char* text) noexcept {
  int value = 0;
  for (; *text >= '0' && *text <= '9' && value < 1'000'000; ++text) value = value * 10 + (*text - '0');
  return *text == '\0' ? value : -1;
}

std::size_t size_of(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

// The engine's state is static: in .data and .bss, touched before the start, never on a heap.
struct Engine {
  OwnMemory memory;
  Candidate candidate;
  PlanView plan;
  Demand demand;
};
constinit Engine engine;
alignas(ReplayRun) constinit char replay_place[sizeof(ReplayRun)] = {};

EngineStatus run(int plan_fd, const EngineRequest& request, EngineResult& result, InstantResult* instants,
                 Text& message) noexcept {
  const std::size_t plan_bytes = size_of(plan_fd);
  const void* const plan_block =
      plan_bytes == 0 ? nullptr : engine.memory.map_file(plan_fd, plan_bytes, false);
  if (plan_block == nullptr) {
    message << "plan: cannot map descriptor " << static_cast<std::uint64_t>(plan_fd);
    return EngineStatus::bad_plan;
  }
  if (!check_plan(plan_block, plan_bytes, engine.plan, engine.demand, message)) return EngineStatus::bad_plan;
  Text version(result.allocator_version, sizeof result.allocator_version);
  const CandidateSetup setup{.request = request,
                             .plan = *engine.plan.header,
                             .demand = engine.demand,
                             .memory = engine.memory,
                             .message = message,
                             .version = version};
  if (!load_candidate(setup, engine.candidate)) return EngineStatus::refused;
  auto* const replay =
      new (replay_place) ReplayRun(request, engine.plan, engine.candidate, engine.memory, result, instants);
  touch_static_memory();
  report_crashes_in(result);
  if (!replay->prepare(message)) return EngineStatus::refused;
  replay->execute();
  return EngineStatus::fine;
}

int engine_main(int count, char** arguments) noexcept {
  const bool settled = count == 6 && std::strcmp(arguments[5], "--settled") == 0;
  if ((count != 5 && !settled) || std::strcmp(arguments[1], "--plan-fd") != 0 ||
      std::strcmp(arguments[3], "--result-fd") != 0)
    return 2;
  const int plan_fd = descriptor_of(arguments[2]);
  const int result_fd = descriptor_of(arguments[4]);
  const std::size_t shared_bytes = result_fd < 0 ? 0 : size_of(result_fd);
  constexpr std::size_t fixed_bytes = sizeof(EngineRequest) + sizeof(EngineResult);
  if (plan_fd < 0 || shared_bytes < fixed_bytes) return 2;
  auto* const shared = static_cast<char*>(engine.memory.map_file(result_fd, shared_bytes, true));
  if (shared == nullptr) return 2;
  const EngineRequest& request = *reinterpret_cast<EngineRequest*>(shared);
  auto& result = *reinterpret_cast<EngineResult*>(shared + sizeof(EngineRequest));
  auto* const instants = reinterpret_cast<InstantResult*>(shared + fixed_bytes);
  if (request.magic != engine_magic || request.version != engine_protocol_version ||
      request.instant_capacity > (shared_bytes - fixed_bytes) / sizeof(InstantResult))
    return 2;
  result = {};
  result.magic = engine_magic;
  Text message(result.message, sizeof result.message);
  bool randomised = false;
  if (!settle(request, arguments, settled, randomised, message)) {
    result.status = EngineStatus::refused;
    return 0;
  }
  result.randomised = randomised ? 1 : 0;
  // Last, and only here: until then the result says that the engine has not finished.
  result.status = run(plan_fd, request, result, instants, message);
  return 0;
}

}  // namespace

}  // namespace heaptape::replayer::engine

// Leaves without exit handlers: the candidate's are no part of the tape, and threads still sleep.
int main(int count, char** arguments) { ::_exit(heaptape::replayer::engine::engine_main(count, arguments)); }
