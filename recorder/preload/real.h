// The program's own allocator: the functions that the hooks forward to.
//
// Each starts as a stub that finds all of them and calls the one meant, so a call is one load and one
// indirect jump, never a test. While they are being looked for on this thread, blocks come from
// bootstrap.h. Any thread; finding them twice at the same time is harmless.
#pragma once

#include <atomic>
#include <cstddef>

namespace heaptape::preload {

template <typename Signature>
class RealFunction;

template <typename R, typename... Args>
class RealFunction<R(Args...)> {
 public:
  using Pointer = R (*)(Args...);
  constexpr explicit RealFunction(Pointer stub) noexcept : pointer_(stub) {}

  [[gnu::always_inline]] R operator()(Args... args) const {
    return pointer_.load(std::memory_order_relaxed)(args...);
  }
  [[nodiscard]] Pointer get() const noexcept { return pointer_.load(std::memory_order_relaxed); }
  void set(Pointer p) noexcept { pointer_.store(p, std::memory_order_relaxed); }

 private:
  std::atomic<Pointer> pointer_;  // partner: itself; what it points to is code, older than any thread
};

struct RealFunctions {
  RealFunction<void*(std::size_t)> malloc;
  RealFunction<void*(std::size_t, std::size_t)> calloc;
  RealFunction<void*(void*, std::size_t)> realloc;
  RealFunction<void*(void*, std::size_t, std::size_t)> reallocarray;
  RealFunction<void(void*)> free;
  RealFunction<int(void**, std::size_t, std::size_t)> posix_memalign;
  RealFunction<void*(std::size_t, std::size_t)> aligned_alloc;
  RealFunction<void*(std::size_t, std::size_t)> memalign;
  RealFunction<void*(std::size_t)> valloc;
  RealFunction<void*(std::size_t)> pvalloc;
  RealFunction<std::size_t(void*)> malloc_usable_size;
  RealFunction<int(std::size_t)> malloc_trim;
};
extern constinit RealFunctions real;

// Replaces the stubs, once.
void resolve_real_functions() noexcept;

// The C++ allocation functions, in the order of `operator_names` in real.cpp.
enum class Operator : unsigned {
  new_plain,
  new_array,
  new_nothrow,
  new_array_nothrow,
  new_aligned,
  new_array_aligned,
  new_aligned_nothrow,
  new_array_aligned_nothrow,
  delete_plain,
  delete_array,
  delete_sized,
  delete_array_sized,
  delete_nothrow,
  delete_array_nothrow,
  delete_aligned,
  delete_array_aligned,
  delete_sized_aligned,
  delete_array_sized_aligned,
  delete_aligned_nothrow,
  delete_array_aligned_nothrow,
  count,
};

// The next definition of that operator; null if no loaded object has one (then the caller uses malloc
// and free). Looked for at the first call, since the C++ library may be loaded long after the start.
[[nodiscard]] void* find_operator(Operator op) noexcept;

extern constinit std::atomic<void*> known_operators[static_cast<unsigned>(Operator::count)];

[[nodiscard, gnu::always_inline]] inline void* real_operator(Operator op) noexcept {
  // Partner: the relaxed store in find_operator(); code only, as above.
  void* const known = known_operators[static_cast<unsigned>(op)].load(std::memory_order_relaxed);
  return known != nullptr ? known : find_operator(op);
}

}  // namespace heaptape::preload
