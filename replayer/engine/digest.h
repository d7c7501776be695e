// Running 64-bit digests: equal sequences give equal digests, on every machine.
#pragma once

#include <cstdint>

#include "replayer/plan/plan.h"

namespace heaptape::replayer::engine {

inline constexpr std::uint64_t digest_seed = 0xCBF29CE484222325ULL;

constexpr std::uint64_t mix(std::uint64_t digest, std::uint64_t value) noexcept {
  digest = (digest ^ value) * 0x9E3779B97F4A7C15ULL;
  return digest ^ (digest >> 32);
}

// The order that was executed, for one baton: stretches of (thread, its first op, how many), where
// neighbouring runs of one thread are one stretch. A time run and a space run cut the same order
// into different runs and still agree. Passed on with the baton, so needs no atomics.
class OrderDigest {
 public:
  void add(std::uint32_t thread, std::uint64_t first_op, std::uint64_t op_count) noexcept {
    if (op_count == 0) return;
    if (op_count_ != 0 && thread == thread_ && first_op == first_op_ + op_count_) {
      op_count_ += op_count;
      return;
    }
    fold();
    thread_ = thread;
    first_op_ = first_op;
    op_count_ = op_count;
  }
  [[nodiscard]] std::uint64_t finish() noexcept {
    fold();
    op_count_ = 0;
    return digest_;
  }

 private:
  void fold() noexcept {
    if (op_count_ != 0) digest_ = mix(mix(mix(digest_, thread_), first_op_), op_count_);
  }

  std::uint64_t digest_ = digest_seed;
  std::uint64_t first_op_ = 0;
  std::uint64_t op_count_ = 0;
  std::uint32_t thread_ = 0;
};

}  // namespace heaptape::replayer::engine
