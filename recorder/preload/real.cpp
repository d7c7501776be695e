#include "recorder/preload/real.h"

#include <errno.h>
#include <string.h>

#include "recorder/preload/bootstrap.h"
#include "recorder/preload/slot.h"
#include "recorder/preload/symbols.h"
#include "recorder/preload/sys.h"

#include "recorder/preload/poison.h"

namespace heaptape::preload {
namespace {

constexpr std::size_t page_bytes = 4096;

bool overflows(std::size_t a, std::size_t b, std::size_t& product) noexcept {
  return __builtin_mul_overflow(a, b, &product);
}
void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}
void* from_bootstrap(std::size_t size_bytes, std::size_t alignment) noexcept {
  void* const p = bootstrap::allocate(size_bytes, alignment);
  return p != nullptr ? p : out_of_memory();
}
int from_bootstrap(void** p, std::size_t alignment, std::size_t size_bytes) noexcept {
  void* const block = bootstrap::allocate(size_bytes, alignment);
  if (block == nullptr) {
    return ENOMEM;
  }
  *p = block;
  return 0;
}

// The allocator's own functions, while those in `real` are ours that look at bootstrap blocks first.
constinit std::atomic<void (*)(void*)> plain_free = nullptr;
constinit std::atomic<void* (*)(void*, std::size_t)> plain_realloc = nullptr;
constinit std::atomic<void* (*)(void*, std::size_t, std::size_t)> plain_reallocarray = nullptr;
constinit std::atomic<std::size_t (*)(void*)> plain_usable_size = nullptr;

void* move_out_of_bootstrap(void* old, std::size_t size_bytes) noexcept {
  if (size_bytes == 0) {
    return nullptr;  // freed, as the C library has it
  }
  void* const p = real.malloc(size_bytes);
  if (p != nullptr) {
    const std::size_t before = bootstrap::size_bytes(old);
    memcpy(p, old, before < size_bytes ? before : size_bytes);
  }
  return p;
}
void checked_free(void* p) noexcept {
  if (!bootstrap::owns(p)) {
    plain_free.load(std::memory_order_relaxed)(p);
  }
}
void* checked_realloc(void* p, std::size_t size_bytes) noexcept {
  return bootstrap::owns(p) ? move_out_of_bootstrap(p, size_bytes)
                            : plain_realloc.load(std::memory_order_relaxed)(p, size_bytes);
}
void* checked_reallocarray(void* p, std::size_t count, std::size_t each_bytes) noexcept {
  if (!bootstrap::owns(p)) {
    return plain_reallocarray.load(std::memory_order_relaxed)(p, count, each_bytes);
  }
  std::size_t size_bytes = 0;
  return overflows(count, each_bytes, size_bytes) ? out_of_memory() : move_out_of_bootstrap(p, size_bytes);
}
std::size_t checked_usable_size(void* p) noexcept {
  return bootstrap::owns(p) ? bootstrap::size_bytes(p) : plain_usable_size.load(std::memory_order_relaxed)(p);
}

// For an allocator that lacks the function: the program could not have called it without us either.
void* no_sized(std::size_t) noexcept { return out_of_memory(); }
void* no_aligned(std::size_t, std::size_t) noexcept { return out_of_memory(); }
void* no_realloc(void*, std::size_t) noexcept { return out_of_memory(); }
void* no_reallocarray(void*, std::size_t, std::size_t) noexcept { return out_of_memory(); }
void no_free(void*) noexcept {}
int no_posix_memalign(void**, std::size_t, std::size_t) noexcept { return ENOMEM; }
std::size_t no_usable_size(void*) noexcept { return 0; }
int no_trim(std::size_t) noexcept { return 0; }

template <typename Pointer>
Pointer next_or(const char* name, Pointer missing) noexcept {
  const Symbol s = next_symbol(name);
  return s ? reinterpret_cast<Pointer>(s.address) : missing;
}

// The stubs. While this very thread is in resolve_real_functions(), the bootstrap serves.
bool resolved_here() noexcept {
  if (current == &marks::resolving) {
    return false;
  }
  resolve_real_functions();
  return true;
}
void* stub_malloc(std::size_t n) { return resolved_here() ? real.malloc(n) : from_bootstrap(n, 0); }
void* stub_calloc(std::size_t count, std::size_t each_bytes) {
  if (resolved_here()) {
    return real.calloc(count, each_bytes);
  }
  std::size_t n = 0;
  return overflows(count, each_bytes, n) ? out_of_memory() : from_bootstrap(n, 0);  // fresh pages: zero
}
void* stub_realloc(void* p, std::size_t n) {
  if (resolved_here()) {
    return real.realloc(p, n);
  }
  void* const fresh = from_bootstrap(n, 0);
  if (fresh != nullptr && p != nullptr && bootstrap::owns(p)) {
    const std::size_t before = bootstrap::size_bytes(p);
    memcpy(fresh, p, before < n ? before : n);
  }
  return fresh;
}
void* stub_reallocarray(void* p, std::size_t count, std::size_t each_bytes) {
  if (resolved_here()) {
    return real.reallocarray(p, count, each_bytes);
  }
  std::size_t n = 0;
  return overflows(count, each_bytes, n) ? out_of_memory() : stub_realloc(p, n);
}
void stub_free(void* p) {
  if (resolved_here()) {
    real.free(p);
  }
}
int stub_posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  return resolved_here() ? real.posix_memalign(p, alignment, n) : from_bootstrap(p, alignment, n);
}
void* stub_aligned_alloc(std::size_t alignment, std::size_t n) {
  return resolved_here() ? real.aligned_alloc(alignment, n) : from_bootstrap(n, alignment);
}
void* stub_memalign(std::size_t alignment, std::size_t n) {
  return resolved_here() ? real.memalign(alignment, n) : from_bootstrap(n, alignment);
}
void* stub_valloc(std::size_t n) { return resolved_here() ? real.valloc(n) : from_bootstrap(n, page_bytes); }
void* stub_pvalloc(std::size_t n) {
  const std::size_t whole_pages = (n + page_bytes - 1) & ~(page_bytes - 1);
  return resolved_here() ? real.pvalloc(n) : from_bootstrap(whole_pages, page_bytes);
}
std::size_t stub_usable_size(void* p) {
  return resolved_here() ? real.malloc_usable_size(p) : (bootstrap::owns(p) ? bootstrap::size_bytes(p) : 0);
}
int stub_trim(std::size_t pad) { return resolved_here() ? real.malloc_trim(pad) : 0; }

constexpr const char* operator_names[] = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};
static_assert(std::size(operator_names) == static_cast<std::size_t>(Operator::count));

}  // namespace

constinit RealFunctions real{
    .malloc = RealFunction<void*(std::size_t)>(stub_malloc),
    .calloc = RealFunction<void*(std::size_t, std::size_t)>(stub_calloc),
    .realloc = RealFunction<void*(void*, std::size_t)>(stub_realloc),
    .reallocarray = RealFunction<void*(void*, std::size_t, std::size_t)>(stub_reallocarray),
    .free = RealFunction<void(void*)>(stub_free),
    .posix_memalign = RealFunction<int(void**, std::size_t, std::size_t)>(stub_posix_memalign),
    .aligned_alloc = RealFunction<void*(std::size_t, std::size_t)>(stub_aligned_alloc),
    .memalign = RealFunction<void*(std::size_t, std::size_t)>(stub_memalign),
    .valloc = RealFunction<void*(std::size_t)>(stub_valloc),
    .pvalloc = RealFunction<void*(std::size_t)>(stub_pvalloc),
    .malloc_usable_size = RealFunction<std::size_t(void*)>(stub_usable_size),
    .malloc_trim = RealFunction<int(std::size_t)>(stub_trim),
};

constinit std::atomic<void*> known_operators[static_cast<unsigned>(Operator::count)] = {};

void resolve_real_functions() noexcept {
  static constinit std::atomic<bool> done = false;
  if (done.load(std::memory_order_acquire)) {  // partner: the release store below
    return;
  }
  const sys::SignalsBlocked blocked;
  Slot* const before = current;
  current = const_cast<Slot*>(&marks::resolving);
  // First look for all of them, then replace the stubs: a block of the bootstrap may be freed meanwhile.
  const auto next_malloc = next_or("malloc", no_sized);
  const auto next_calloc = next_or("calloc", no_aligned);
  const auto next_posix_memalign = next_or("posix_memalign", no_posix_memalign);
  const auto next_aligned_alloc = next_or("aligned_alloc", no_aligned);
  const auto next_memalign = next_or("memalign", no_aligned);
  const auto next_valloc = next_or("valloc", no_sized);
  const auto next_pvalloc = next_or("pvalloc", no_sized);
  const auto next_trim = next_or("malloc_trim", no_trim);
  plain_free.store(next_or("free", no_free), std::memory_order_relaxed);
  plain_realloc.store(next_or("realloc", no_realloc), std::memory_order_relaxed);
  plain_reallocarray.store(next_or("reallocarray", no_reallocarray), std::memory_order_relaxed);
  plain_usable_size.store(next_or("malloc_usable_size", no_usable_size), std::memory_order_relaxed);
  current = before;

  real.malloc.set(next_malloc);
  real.calloc.set(next_calloc);
  real.posix_memalign.set(next_posix_memalign);
  real.aligned_alloc.set(next_aligned_alloc);
  real.memalign.set(next_memalign);
  real.valloc.set(next_valloc);
  real.pvalloc.set(next_pvalloc);
  real.malloc_trim.set(next_trim);
  const bool check = bootstrap::used();
  real.free.set(check ? checked_free : plain_free.load(std::memory_order_relaxed));
  real.realloc.set(check ? checked_realloc : plain_realloc.load(std::memory_order_relaxed));
  real.reallocarray.set(check ? checked_reallocarray : plain_reallocarray.load(std::memory_order_relaxed));
  real.malloc_usable_size.set(check ? checked_usable_size
                                    : plain_usable_size.load(std::memory_order_relaxed));
  done.store(true, std::memory_order_release);
}

void* find_operator(Operator op) noexcept {
  const auto index = static_cast<unsigned>(op);
  const Symbol s = next_symbol(operator_names[index]);
  if (s.stays) {
    known_operators[index].store(s.address, std::memory_order_relaxed);
  }
  return s.address;
}

}  // namespace heaptape::preload
