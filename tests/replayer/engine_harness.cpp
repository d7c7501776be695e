#include "tests/replayer/engine_harness.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace heaptape::replayer {

namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

template <std::size_t size>
void put(char (&to)[size], const std::string& from) {
  if (from.size() >= size) give_up("a name is too long");
  std::memcpy(to, from.c_str(), from.size() + 1);
}

[[noreturn]] void become_engine(int plan_fd, int result_fd, const EngineSetup& setup) {
  for (const int fd : {plan_fd, result_fd}) ::fcntl(fd, F_SETFD, 0);
  std::string plan_text = std::to_string(plan_fd);
  std::string result_text = std::to_string(result_fd);
  std::vector<std::string> texts = {"heaptape-engine", "--plan-fd", plan_text, "--result-fd", result_text};
  std::vector<std::string> settings = setup.environment;
  if (!setup.preload.empty()) settings.push_back("LD_PRELOAD=" + setup.preload);
  std::vector<char*> arguments;
  std::vector<char*> environment;
  for (std::string& text : texts) arguments.push_back(text.data());
  for (std::string& text : settings) environment.push_back(text.data());
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  ::execve(HEAPTAPE_ENGINE_PATH, arguments.data(), environment.data());
  ::_exit(127);
}

}  // namespace

EngineRun run_engine(int plan_fd, std::uint64_t instants, const EngineSetup& setup) {
  const std::size_t capacity = setup.mode == RunMode::space ? instants : 0;
  const std::size_t fixed = sizeof(EngineRequest) + sizeof(EngineResult);
  const std::size_t bytes = fixed + capacity * sizeof(InstantResult);
  const format::Descriptor memory(::memfd_create("engine-test", MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) give_up("memfd");
  auto* const shared =
      static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));
  if (shared == MAP_FAILED) give_up("mmap");
  auto& request = *reinterpret_cast<EngineRequest*>(shared);
  request.magic = engine_magic;
  request.version = engine_protocol_version;
  request.mode = setup.mode;
  request.touch = setup.touch;
  request.huge_pages = HugePages::never;
  request.candidate = setup.candidate;
  request.instant_capacity = static_cast<std::uint32_t>(capacity);
  request.arena_bytes = setup.arena_bytes;
  put(request.name, setup.name);
  put(request.library, setup.library);
  put(request.prefix, setup.prefix);
  put(request.tunables, setup.tunables);

  const pid_t child = ::fork();
  if (child < 0) give_up("fork");
  if (child == 0) become_engine(plan_fd, memory.get(), setup);
  EngineRun run;
  ::waitpid(child, &run.wait_status, 0);
  std::memcpy(&run.result, shared + sizeof(EngineRequest), sizeof run.result);
  run.instants.resize(std::min<std::size_t>(run.result.instant_count, capacity));
  if (!run.instants.empty())
    std::memcpy(run.instants.data(), shared + fixed, run.instants.size() * sizeof(InstantResult));
  ::munmap(shared, bytes);
  return run;
}

EngineRun run_engine(const Plan& plan, const EngineSetup& setup) {
  return run_engine(plan.fd(), plan.instants().size(), setup);
}

std::string find_library(const std::string& soname) {
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib64/", "/usr/lib/"}) {
    const std::filesystem::path path = folder + soname;
    std::error_code error;
    const auto real = std::filesystem::canonical(path, error);
    if (!error) return real.native();
  }
  return {};
}

Plan must_compile(format::EventCursor& events, Order order, std::uint32_t exact_instants,
                  std::uint32_t cheap_instants) {
  auto plan = compile_plan(
      events, {.order = order, .exact_instants = exact_instants, .cheap_instants = cheap_instants});
  if (!plan) {
    std::fprintf(stderr, "the plan does not compile: %s\n", plan.error().message().c_str());
    std::abort();
  }
  return std::move(*plan);
}

std::uint64_t GeneratedTape::below(std::uint64_t limit) {
  state_ ^= state_ << 13U;
  state_ ^= state_ >> 7U;
  state_ ^= state_ << 17U;
  return (state_ >> 11U) % limit;
}

void GeneratedTape::acquire(format::Event& event) {
  format::SlotIndex slot{slots_};
  if (free_slots_.empty()) {
    ++slots_;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  event.object = format::ObjectId{++objects_};
  event.slot = slot;
  live_.push_back({objects_, event.size_bytes, slot});
}

void GeneratedTape::release(format::Event& event) {
  const std::size_t victim = below(live_.size());
  const Block block = live_[victim];
  live_[victim] = live_.back();
  live_.pop_back();
  free_slots_.push_back(block.slot);
  event.released = format::ObjectId{block.object};
  event.released_slot = block.slot;
  event.released_size_bytes = block.size_bytes;
}

format::Result<std::span<const format::Event>> GeneratedTape::next() {
  using format::Kind;
  batch_.clear();
  for (; made_ < shape_.steps && batch_.size() < 4096; ++made_) {
    if (below(shape_.calls_per_run) == 0) thread_ = static_cast<std::uint32_t>(below(shape_.threads));
    format::Event event;
    event.index = made_;
    event.time_ns = static_cast<std::int64_t>(made_) * 100;
    event.thread = format::ThreadIndex{thread_};
    const bool growing = (made_ / (shape_.live_target + 1)) % 2 == 0;
    const bool acquires = live_.empty() || (below(100) < (growing ? 60U : 40U) &&
                                            live_.size() < 2 * std::uint64_t{shape_.live_target});
    const std::uint64_t size =
        below(20) == 0 ? below(shape_.largest_bytes) : below(shape_.largest_bytes / 8 + 1);
    if (acquires) {
      constexpr Kind kinds[] = {Kind::malloc, Kind::malloc,       Kind::malloc,        Kind::operator_new,
                                Kind::calloc, Kind::operator_new, Kind::posix_memalign};
      event.kind = kinds[below(std::size(kinds))];
      if (event.kind == Kind::posix_memalign) event.alignment = std::uint64_t{8} << below(5);
      event.size_bytes = size;
      acquire(event);
    } else if (below(10) == 0) {
      event.kind = Kind::realloc;
      event.size_bytes = size + 1;
      release(event);
      acquire(event);
    } else {
      event.kind = Kind::free;
      release(event);
    }
    batch_.push_back(event);
  }
  report_.events = made_;
  return std::span<const format::Event>(batch_);
}

}  // namespace heaptape::replayer
