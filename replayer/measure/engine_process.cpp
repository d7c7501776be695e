#include "replayer/measure/engine_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "format/base/descriptor.h"
#include "format/base/units.h"

namespace heaptape::replayer {

using format::Descriptor;
using format::ExitCode;
using format::failure;
using format::Failure;
using format::Result;
using format::system_failure;

namespace {

// As the engine sees them.
constexpr int plan_descriptor = 3;
constexpr int result_descriptor = 4;
constexpr std::size_t output_bytes = std::size_t{64} << 10;

// The memfd that driver and engine share.
class Exchange {
 public:
  static Result<Exchange> create(std::size_t instants) {
    Exchange e;
    e.memory_ = Descriptor(::memfd_create("heaptape-result", MFD_CLOEXEC));
    e.size_bytes_ = sizeof(EngineRequest) + sizeof(EngineResult) + instants * sizeof(InstantResult);
    if (!e.memory_ || ::ftruncate(e.memory_.get(), static_cast<off_t>(e.size_bytes_)) != 0) {
      return system_failure("replay: memory for an engine's result", errno);
    }
    e.base_ = ::mmap(nullptr, e.size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, e.memory_.get(), 0);
    if (e.base_ == MAP_FAILED) {
      e.base_ = nullptr;
      return system_failure("replay: mapping an engine's result", errno);
    }
    return e;
  }
  Exchange(Exchange&& other) noexcept
      : memory_(std::move(other.memory_)),
        base_(std::exchange(other.base_, nullptr)),
        size_bytes_(other.size_bytes_) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  Exchange& operator=(Exchange&&) = delete;
  ~Exchange() {
    if (base_ != nullptr) {
      ::munmap(base_, size_bytes_);
    }
  }
  [[nodiscard]] int fd() const { return memory_.get(); }
  [[nodiscard]] EngineRequest& request() const { return *static_cast<EngineRequest*>(base_); }
  // A copy: the engine is gone, but what it left is checked before it is believed.
  [[nodiscard]] EngineResult result() const {
    EngineResult r;
    std::memcpy(&r, at(sizeof(EngineRequest)), sizeof r);
    r.message[sizeof r.message - 1] = '\0';
    r.allocator_version[sizeof r.allocator_version - 1] = '\0';
    return r;
  }
  [[nodiscard]] std::vector<InstantResult> instants(std::size_t count) const {
    std::vector<InstantResult> all(count);
    if (count != 0) {
      std::memcpy(all.data(), at(sizeof(EngineRequest) + sizeof(EngineResult)),
                  count * sizeof(InstantResult));
    }
    return all;
  }

 private:
  Exchange() = default;
  [[nodiscard]] const void* at(std::size_t offset) const { return static_cast<const char*>(base_) + offset; }

  Descriptor memory_;
  void* base_ = nullptr;
  std::size_t size_bytes_ = 0;
};

template <std::size_t size>
bool copy_text(char (&to)[size], std::string_view from) {
  if (from.size() >= size) {
    return false;
  }
  std::memcpy(to, from.data(), from.size());
  to[from.size()] = '\0';
  return true;
}

Result<void> fill_request(EngineRequest& request, const Plan& plan, const Candidate& candidate, RunMode mode,
                          const EngineSettings& settings) {
  request.magic = engine_magic;
  request.version = engine_protocol_version;
  request.mode = mode;
  request.touch = settings.touch;
  request.huge_pages = settings.huge_pages;
  request.instant_capacity = static_cast<std::uint32_t>(mode == RunMode::space ? plan.instants().size() : 0);
  request.arena_bytes = candidate.arena_bytes != 0 ? candidate.arena_bytes : settings.arena_bytes;
  switch (candidate.access) {
    case Access::builtin:
      request.candidate = CandidateKind::builtin;
      break;
    case Access::process:
    case Access::preload:
      request.candidate = CandidateKind::process;
      break;
    case Access::library:
      request.candidate = CandidateKind::library;
      break;
  }
  const bool fits =
      copy_text(request.name,
                candidate.access == Access::builtin ? candidate.name : candidate.label.substr(0, 63)) &&
      copy_text(request.library, candidate.library.native()) && copy_text(request.prefix, candidate.prefix) &&
      copy_text(request.tunables, candidate.tunables);
  if (!fits) {
    return failure(ExitCode::usage, "-a {}: name, path, prefix or settings are too long", candidate.label);
  }
  return {};
}

std::vector<std::string> environment_of(const Candidate& candidate) {
  std::vector<std::string> environment = candidate.environment;
  if (candidate.access == Access::preload) {
    environment.push_back("LD_PRELOAD=" + candidate.library.native());
  }
  if (const char* path = std::getenv("LD_LIBRARY_PATH"); path != nullptr) {
    environment.push_back(std::string("LD_LIBRARY_PATH=") + path);
  }
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& t : texts) {
    pointers.push_back(t.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// What the engine prints: a memfd that takes so much and no more, so that nobody need drain it.
Descriptor make_output() {
  Descriptor output(::memfd_create("heaptape-output", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (output && (::ftruncate(output.get(), output_bytes) != 0 ||
                 ::fcntl(output.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)) {
    output.reset();
  }
  return output;
}

// The first line that says something.
std::string first_line(const Descriptor& output) {
  std::array<char, 512> text{};
  const ssize_t n = ::pread(output.get(), text.data(), text.size() - 1, 0);
  std::string_view all(text.data(), n > 0 ? ::strnlen(text.data(), static_cast<std::size_t>(n)) : 0);
  all.remove_prefix(std::min(all.find_first_not_of(" \n=-"), all.size()));
  return std::string(all.substr(0, all.find('\n')));
}

Result<pid_t> spawn(const std::filesystem::path& engine, const Plan& plan, int result_fd, int output_fd,
                    std::vector<std::string> environment) {
  // Away from the numbers that the child will see, so that no duplicate overwrites the other.
  const Descriptor plan_source(::fcntl(plan.fd(), F_DUPFD_CLOEXEC, 64));
  const Descriptor result_source(::fcntl(result_fd, F_DUPFD_CLOEXEC, 64));
  const Descriptor output_source(::fcntl(output_fd, F_DUPFD_CLOEXEC, 64));
  if (!plan_source || !result_source || !output_source) {
    return system_failure("replay: descriptors for an engine", errno);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output_source.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, output_source.get(), 2);
  ::posix_spawn_file_actions_adddup2(&actions, plan_source.get(), plan_descriptor);
  ::posix_spawn_file_actions_adddup2(&actions, result_source.get(), result_descriptor);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, result_descriptor + 1);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> arguments = {engine.native(), "--plan-fd", std::to_string(plan_descriptor),
                                        "--result-fd", std::to_string(result_descriptor)};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, engine.c_str(), &actions, &attributes, pointers_to(arguments).data(),
                                  pointers_to(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return system_failure(fmt::format("replay: starting {}", engine.native()), error);
  }
  return pid;
}

// Waits until the child has ended or the time is over; false: over, and the child has been killed.
bool await(pid_t pid, std::chrono::nanoseconds timeout, int& status) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + timeout;
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return false;
    }
    if (handle) {
      pollfd ready{handle.get(), POLLIN, 0};
      ::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a kernel before 5.3
    }
  }
  return true;
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

// Why the run is no good; empty: it is.
std::string judge(int status, const EngineResult& result, RunMode mode, const Plan& plan) {
  const std::string said = result.message[0] == '\0' ? "" : fmt::format(": {}", result.message);
  if (WIFSIGNALED(status)) {
    return fmt::format("crashed with {}{}", signal_text(WTERMSIG(status)), said);
  }
  if (result.magic != engine_magic) {
    return fmt::format("the engine did not start (exit status {})", WEXITSTATUS(status));
  }
  switch (result.status) {
    case EngineStatus::not_finished:
      return fmt::format("ended the process before the replay was done (exit status {}){}",
                         WEXITSTATUS(status), said);
    case EngineStatus::refused:
      return fmt::format("cannot be replayed{}", said);
    case EngineStatus::bad_plan:
      return fmt::format("the engine does not accept the plan{}", said);
    case EngineStatus::fine:
      break;
    default:
      return "the engine's result is damaged";
  }
  if (result.ops_executed != plan.calls()) {
    return fmt::format("executed {} of {} calls", result.ops_executed, plan.calls());
  }
  if (mode == RunMode::space && result.instant_count != plan.instants().size()) {
    return fmt::format("measured at {} of {} instants", result.instant_count, plan.instants().size());
  }
  return {};
}

}  // namespace

Result<std::filesystem::path> find_engine() {
  std::error_code error;
  if (const char* named = std::getenv("HEAPTAPE_ENGINE"); named != nullptr && *named != '\0') {
    if (::access(named, X_OK) == 0) {
      return std::filesystem::absolute(named, error);
    }
    return failure(ExitCode::system, "HEAPTAPE_ENGINE={}: no program there", named);
  }
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place :
       {"heaptape-engine", "../libexec/heaptape/heaptape-engine", "../libexec/heaptape-engine"}) {
    if (const auto path = (here / place).lexically_normal(); ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return failure(ExitCode::system, "heaptape-engine is not beside {}; set HEAPTAPE_ENGINE to its path",
                 here.native());
}

Result<EngineOutcome> run_engine(const Plan& plan, const Candidate& candidate, RunMode mode,
                                 const EngineSettings& settings) {
  const auto exchange = Exchange::create(mode == RunMode::space ? plan.instants().size() : 0);
  if (!exchange) {
    return Failure(exchange.error());
  }
  HEAPTAPE_TRY(fill_request(exchange->request(), plan, candidate, mode, settings));
  const Descriptor output = make_output();
  if (!output) {
    return system_failure("replay: memory for an engine's output", errno);
  }
  const auto pid = spawn(settings.engine, plan, exchange->fd(), output.get(), environment_of(candidate));
  if (!pid) {
    return Failure(pid.error());
  }
  int status = 0;
  const bool in_time = await(*pid, settings.timeout, status);
  EngineOutcome outcome;
  outcome.result = exchange->result();
  outcome.failure = in_time ? judge(status, outcome.result, mode, plan)
                            : fmt::format("not done after {}, killed; --timeout gives it longer",
                                          format::format_duration(settings.timeout));
  if (outcome.failure.empty()) {
    outcome.instants = exchange->instants(mode == RunMode::space ? outcome.result.instant_count : 0);
  } else if (const std::string line = first_line(output); !line.empty()) {
    outcome.failure += fmt::format(" (it printed: {})", line);
  }
  return outcome;
}

}  // namespace heaptape::replayer
