// All forms of operator new and delete, under the names that the C++ compilers give them on x86-64.
//
// Each forwards to the next definition, found at the first call (real.h): the C++ library's, the
// program's allocator's, or that of a plug-in loaded with RTLD_LOCAL. If no loaded object has one, then
// nobody in this process can throw, or knows of a new-handler: operator new is then malloc, in its failure
// too (null), and operator delete is free.
// A throw passes through these frames like through any C function: they have unwind tables and nothing to
// clean up. What they leave marked in the thread's slot is recognised as left (record.h).

#include "recorder/preload/hooks.h"
#include "recorder/preload/real.h"

#include "recorder/preload/poison.h"

using heaptape::preload::address_of;
using heaptape::preload::Call;
using heaptape::preload::hook_layered_acquire;
using heaptape::preload::hook_release;
using heaptape::preload::Operator;
using heaptape::preload::real;
using heaptape::preload::real_operator;

namespace {

template <typename... Args>
[[gnu::always_inline]] inline void* next_new(Operator op, std::size_t size, Args... args) {
  if (void* const next = real_operator(op); next != nullptr) [[likely]] {
    return reinterpret_cast<void* (*)(std::size_t, Args...)>(next)(size, args...);
  }
  return real.malloc(size != 0 ? size : 1);
}
[[gnu::always_inline]] inline void* next_new_aligned(Operator op, std::size_t size, std::size_t alignment) {
  if (void* const next = real_operator(op); next != nullptr) [[likely]] {
    return reinterpret_cast<void* (*)(std::size_t, std::size_t)>(next)(size, alignment);
  }
  return real.memalign(alignment, size != 0 ? size : 1);
}
[[gnu::always_inline]] inline void* next_new_aligned(Operator op, std::size_t size, std::size_t alignment,
                                                     const void* nothrow) {
  if (void* const next = real_operator(op); next != nullptr) [[likely]] {
    return reinterpret_cast<void* (*)(std::size_t, std::size_t, const void*)>(next)(size, alignment, nothrow);
  }
  return real.memalign(alignment, size != 0 ? size : 1);
}
template <typename... Args>
[[gnu::always_inline]] inline void next_delete(Operator op, void* p, Args... args) {
  if (void* const next = real_operator(op); next != nullptr) [[likely]] {
    reinterpret_cast<void (*)(void*, Args...)>(next)(p, args...);
    return;
  }
  real.free(p);
}

}  // namespace

// new: size | size, nothrow | size, alignment | size, alignment, nothrow

HEAPTAPE_HOOK void* _Znwm(std::size_t size) {
  return hook_layered_acquire({.call = Call::operator_new, .size_bytes = size, .site = HEAPTAPE_CALLER},
                              [=] { return next_new(Operator::new_plain, size); });
}
HEAPTAPE_HOOK void* _Znam(std::size_t size) {
  return hook_layered_acquire({.call = Call::operator_new_array, .size_bytes = size, .site = HEAPTAPE_CALLER},
                              [=] { return next_new(Operator::new_array, size); });
}
HEAPTAPE_HOOK void* _ZnwmRKSt9nothrow_t(std::size_t size, const void* nothrow) {
  return hook_layered_acquire(
      {.call = Call::operator_new_nothrow, .size_bytes = size, .site = HEAPTAPE_CALLER},
      [=] { return next_new(Operator::new_nothrow, size, nothrow); });
}
HEAPTAPE_HOOK void* _ZnamRKSt9nothrow_t(std::size_t size, const void* nothrow) {
  return hook_layered_acquire(
      {.call = Call::operator_new_array_nothrow, .size_bytes = size, .site = HEAPTAPE_CALLER},
      [=] { return next_new(Operator::new_array_nothrow, size, nothrow); });
}
HEAPTAPE_HOOK void* _ZnwmSt11align_val_t(std::size_t size, std::size_t alignment) {
  return hook_layered_acquire(
      {.call = Call::operator_new, .size_bytes = size, .alignment = alignment, .site = HEAPTAPE_CALLER},
      [=] { return next_new_aligned(Operator::new_aligned, size, alignment); });
}
HEAPTAPE_HOOK void* _ZnamSt11align_val_t(std::size_t size, std::size_t alignment) {
  return hook_layered_acquire(
      {.call = Call::operator_new_array, .size_bytes = size, .alignment = alignment, .site = HEAPTAPE_CALLER},
      [=] { return next_new_aligned(Operator::new_array_aligned, size, alignment); });
}
HEAPTAPE_HOOK void* _ZnwmSt11align_val_tRKSt9nothrow_t(std::size_t size, std::size_t alignment,
                                                       const void* nothrow) {
  return hook_layered_acquire(
      {.call = Call::operator_new_nothrow,
       .size_bytes = size,
       .alignment = alignment,
       .site = HEAPTAPE_CALLER},
      [=] { return next_new_aligned(Operator::new_aligned_nothrow, size, alignment, nothrow); });
}
HEAPTAPE_HOOK void* _ZnamSt11align_val_tRKSt9nothrow_t(std::size_t size, std::size_t alignment,
                                                       const void* nothrow) {
  return hook_layered_acquire(
      {.call = Call::operator_new_array_nothrow,
       .size_bytes = size,
       .alignment = alignment,
       .site = HEAPTAPE_CALLER},
      [=] { return next_new_aligned(Operator::new_array_aligned_nothrow, size, alignment, nothrow); });
}

// delete: p | p, size | p, nothrow | p, alignment | p, size, alignment | p, alignment, nothrow

HEAPTAPE_HOOK void _ZdlPv(void* p) {
  hook_release({.call = Call::operator_delete, .address = address_of(p), .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_plain, p); });
}
HEAPTAPE_HOOK void _ZdaPv(void* p) {
  hook_release({.call = Call::operator_delete_array, .address = address_of(p), .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_array, p); });
}
HEAPTAPE_HOOK void _ZdlPvm(void* p, std::size_t size) {
  hook_release({.call = Call::operator_delete_sized,
                .address = address_of(p),
                .size_bytes = size,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_sized, p, size); });
}
HEAPTAPE_HOOK void _ZdaPvm(void* p, std::size_t size) {
  hook_release({.call = Call::operator_delete_array_sized,
                .address = address_of(p),
                .size_bytes = size,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_array_sized, p, size); });
}
HEAPTAPE_HOOK void _ZdlPvRKSt9nothrow_t(void* p, const void* nothrow) {
  hook_release({.call = Call::operator_delete, .address = address_of(p), .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_nothrow, p, nothrow); });
}
HEAPTAPE_HOOK void _ZdaPvRKSt9nothrow_t(void* p, const void* nothrow) {
  hook_release({.call = Call::operator_delete_array, .address = address_of(p), .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_array_nothrow, p, nothrow); });
}
HEAPTAPE_HOOK void _ZdlPvSt11align_val_t(void* p, std::size_t alignment) {
  hook_release({.call = Call::operator_delete,
                .address = address_of(p),
                .alignment = alignment,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_aligned, p, alignment); });
}
HEAPTAPE_HOOK void _ZdaPvSt11align_val_t(void* p, std::size_t alignment) {
  hook_release({.call = Call::operator_delete_array,
                .address = address_of(p),
                .alignment = alignment,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_array_aligned, p, alignment); });
}
HEAPTAPE_HOOK void _ZdlPvmSt11align_val_t(void* p, std::size_t size, std::size_t alignment) {
  hook_release({.call = Call::operator_delete_sized,
                .address = address_of(p),
                .size_bytes = size,
                .alignment = alignment,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_sized_aligned, p, size, alignment); });
}
HEAPTAPE_HOOK void _ZdaPvmSt11align_val_t(void* p, std::size_t size, std::size_t alignment) {
  hook_release({.call = Call::operator_delete_array_sized,
                .address = address_of(p),
                .size_bytes = size,
                .alignment = alignment,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_array_sized_aligned, p, size, alignment); });
}
HEAPTAPE_HOOK void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* p, std::size_t alignment, const void* nothrow) {
  hook_release({.call = Call::operator_delete,
                .address = address_of(p),
                .alignment = alignment,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_aligned_nothrow, p, alignment, nothrow); });
}
HEAPTAPE_HOOK void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* p, std::size_t alignment, const void* nothrow) {
  hook_release({.call = Call::operator_delete_array,
                .address = address_of(p),
                .alignment = alignment,
                .site = HEAPTAPE_CALLER},
               [=] { next_delete(Operator::delete_array_aligned_nothrow, p, alignment, nothrow); });
}
