#include "replayer/plan/assemble.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "format/base/descriptor.h"

namespace heaptape::replayer {

using format::Descriptor;
using format::Result;
using format::system_failure;

namespace {

// Appends to the memfd at `offset`, which advances.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  template <typename T>
  bool write(std::span<const T> items) {
    const auto* from = static_cast<const char*>(static_cast<const void*>(items.data()));
    std::size_t left = items.size_bytes();
    while (left != 0 && error_ == 0) {
      const ssize_t n = ::pwrite(fd_, from, left, static_cast<off_t>(offset_));
      if (n < 0 && errno != EINTR) {
        error_ = errno;
      } else if (n > 0) {
        from += n;
        left -= static_cast<std::size_t>(n);
        offset_ += static_cast<std::uint64_t>(n);
      }
    }
    return error_ == 0;
  }
  // The next section begins here.
  std::uint64_t align() {
    offset_ = (offset_ + 63) & ~std::uint64_t{63};
    return offset_;
  }
  [[nodiscard]] int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
  std::uint64_t offset_ = 0;
};

// The runs with a cut at every instant; tells each instant the run it stands before.
ChunkList<PlanRun> split_runs(ChunkList<PlanRun> runs, std::span<PlanInstant> instants) {
  ChunkList<PlanRun> split;
  std::uint64_t done = 0;
  std::size_t next = 0;
  runs.drain([&](std::span<const PlanRun> chunk) {
    for (PlanRun run : chunk) {
      for (; next < instants.size() && instants[next].op_index < done + run.op_count; ++next) {
        const auto before = static_cast<std::uint32_t>(instants[next].op_index - done);
        if (before != 0) {
          split.push_back({run.thread, before});
          run.op_count -= before;
          done += before;
        }
        instants[next].run = split.size();
      }
      split.push_back(run);
      done += run.op_count;
    }
    return true;
  });
  for (; next < instants.size(); ++next) {
    instants[next].run = split.size();
  }
  return split;
}

}  // namespace

Result<Plan> PlanAssembler::assemble(PlanPieces pieces) {
  Descriptor memory(::memfd_create("heaptape-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) {
    return system_failure("plan: memfd_create", errno);
  }
  PlanHeader& header = pieces.header;
  Output out(memory.get());
  out.write(std::span<const PlanHeader>(&header, 1));  // again at the end, complete

  std::vector<PlanThread> threads;
  threads.reserve(pieces.threads.size());
  header.op_count = 0;
  for (const ThreadPieces& t : pieces.threads) {
    threads.push_back({header.op_count, t.ops.size()});
    header.op_count += t.ops.size();
  }
  header.thread_count = static_cast<std::uint32_t>(threads.size());
  header.threads_offset = out.align();
  out.write(std::span<const PlanThread>(threads));

  header.ops_offset = out.align();
  const auto write_chunk = [&out](auto chunk) { return out.write(chunk); };
  for (ThreadPieces& t : pieces.threads) {
    t.ops.drain(write_chunk);
  }

  ChunkList<PlanRun> runs = split_runs(std::move(pieces.runs), pieces.instants);
  header.run_count = runs.size();
  header.runs_offset = out.align();
  runs.drain(write_chunk);

  header.instant_count = pieces.instants.size();
  header.instants_offset = out.align();
  out.write(std::span<const PlanInstant>(pieces.instants));

  header.magic = plan_magic;
  header.version = plan_version;
  header.total_bytes = out.align();
  if (out.error() != 0) {
    return system_failure("plan: writing it to memory", out.error());
  }
  if (::ftruncate(memory.get(), static_cast<off_t>(header.total_bytes)) != 0) {
    return system_failure("plan: ftruncate", errno);
  }
  Output front(memory.get());
  front.write(std::span<const PlanHeader>(&header, 1));
  if (front.error() != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return system_failure("plan: sealing it", errno);
  }
  auto plan = Plan::adopt(std::move(memory));
  if (plan) {
    auto* ops = static_cast<PlanOp*>(
        static_cast<void*>(static_cast<std::byte*>(plan->base_) + plan->header().ops_offset));
    for (std::size_t t = 0; t < threads.size(); ++t) {
      for (const std::uint64_t position : pieces.threads[t].published) {
        ops[threads[t].first_op + position].flags |= op_publish;
      }
    }
  }
  return plan;
}

}  // namespace heaptape::replayer
