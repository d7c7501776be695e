// The C entry points. Every function does what the next one of its name does, and records it.

#include <errno.h>

#include "recorder/preload/hooks.h"
#include "recorder/preload/real.h"

#include "recorder/preload/poison.h"

using heaptape::preload::address_of;
using heaptape::preload::Call;
using heaptape::preload::product_or_most;
using heaptape::preload::RawEvent;
using heaptape::preload::real;
using heaptape::preload::Slot;
using heaptape::preload::Way;
using heaptape::ring::Phase;

namespace heaptape::preload {
namespace {

// Calls a realloc and tells how it ended. A null result for size 0 has two meanings, and allocators
// differ: the old block was freed (glibc, tcmalloc), or there was no memory for the minimal block that
// this allocator would have returned. Only the second sets errno to ENOMEM.
template <typename RealCall>
[[gnu::always_inline]] inline void* call_realloc(RawEvent& event, RealCall real_call) noexcept {
  void* p = nullptr;
  bool freed = false;
  if (event.size_bytes == 0 && event.address != 0) [[unlikely]] {
    const int before = errno;
    errno = 0;
    p = real_call();
    freed = p == nullptr && errno != ENOMEM;
    if (errno == 0) {
      errno = before;
    }
  } else {
    p = real_call();
  }
  event.phase = p == nullptr && !freed ? Phase::failed : Phase::end;
  event.address = address_of(p);
  return p;
}

// begin(old) before the call, end(new) or failed after it: in between another thread may already get
// the old address. Nobody waits for the begin of realloc(NULL, n): it comes with the end.
template <typename RealCall>
[[gnu::always_inline]] inline void* resize(Slot* slot, RawEvent event, RealCall real_call) {
  slot->outer = arch::stack_pointer();
  slot->released = event.address;
  slot->outer_event = event;
  slot->described = true;
  RawEvent begin = event;
  if (begin.address != 0) {
    begin.stamp = release_stamp(*slot);
    record(*slot, begin);
  }
  void* const p = call_realloc(event, real_call);
  settle_parts(event);
  event.stamp = acquire_stamp(*slot);
  if (begin.address == 0) {
    begin.stamp = event.stamp;
    record(*slot, begin);
  }
  record(*slot, event);
  leave_outermost();
  return p;
}

template <typename RealCall>
[[gnu::noinline]] void* odd_resize(RawEvent event, RealCall real_call) {
  switch (enter()) {
    case Way::outermost:
      return resize(current, event, real_call);
    case Way::nested: {
      if (is_part_of_outer(event)) {
        break;  // of another realloc, which records the end
      }
      Foreign foreign;
      void* const p = resize(current, event, real_call);
      if (p != nullptr) {
        foreign.acquired(address_of(p));
      } else {
        foreign.released(event.address);
      }
      return p;
    }
    case Way::forward:
      break;
  }
  return real_call();
}

template <typename RealCall>
[[gnu::always_inline]] inline void* hook_resize(const RawEvent& event, RealCall real_call) {
  Slot* const slot = current;
  if (slot->outer != 0) [[unlikely]] {
    return odd_resize(event, real_call);
  }
  return resize(slot, event, real_call);
}

}  // namespace
}  // namespace heaptape::preload

HEAPTAPE_HOOK void* malloc(std::size_t size) {
  return heaptape::preload::hook_acquire({.call = Call::malloc, .size_bytes = size, .site = HEAPTAPE_CALLER},
                                         [=] { return real.malloc(size); });
}

HEAPTAPE_HOOK void* calloc(std::size_t count, std::size_t each) {
  return heaptape::preload::hook_acquire(
      {.call = Call::calloc, .size_bytes = product_or_most(count, each), .site = HEAPTAPE_CALLER},
      [=] { return real.calloc(count, each); });
}

HEAPTAPE_HOOK void free(void* p) {
  heaptape::preload::hook_release({.call = Call::free, .address = address_of(p), .site = HEAPTAPE_CALLER},
                                  [=] { real.free(p); });
}

HEAPTAPE_HOOK void* realloc(void* p, std::size_t size) {
  return heaptape::preload::hook_resize({.call = Call::realloc,
                                         .phase = Phase::begin,
                                         .address = address_of(p),
                                         .size_bytes = size,
                                         .site = HEAPTAPE_CALLER},
                                        [=] { return real.realloc(p, size); });
}

HEAPTAPE_HOOK void* reallocarray(void* p, std::size_t count, std::size_t each) {
  return heaptape::preload::hook_resize({.call = Call::reallocarray,
                                         .phase = Phase::begin,
                                         .address = address_of(p),
                                         .size_bytes = product_or_most(count, each),
                                         .site = HEAPTAPE_CALLER},
                                        [=] { return real.reallocarray(p, count, each); });
}

HEAPTAPE_HOOK int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  int status = 0;
  heaptape::preload::hook_layered_acquire(
      {.call = Call::posix_memalign, .size_bytes = size, .alignment = alignment, .site = HEAPTAPE_CALLER},
      [&]() -> void* {
        status = real.posix_memalign(result, alignment, size);
        return status == 0 ? *result : nullptr;
      });
  return status;
}

HEAPTAPE_HOOK void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return heaptape::preload::hook_layered_acquire(
      {.call = Call::aligned_alloc, .size_bytes = size, .alignment = alignment, .site = HEAPTAPE_CALLER},
      [=] { return real.aligned_alloc(alignment, size); });
}

HEAPTAPE_HOOK void* memalign(std::size_t alignment, std::size_t size) {
  return heaptape::preload::hook_layered_acquire(
      {.call = Call::memalign, .size_bytes = size, .alignment = alignment, .site = HEAPTAPE_CALLER},
      [=] { return real.memalign(alignment, size); });
}

HEAPTAPE_HOOK void* valloc(std::size_t size) {
  return heaptape::preload::hook_layered_acquire(
      {.call = Call::valloc, .size_bytes = size, .site = HEAPTAPE_CALLER}, [=] { return real.valloc(size); });
}

HEAPTAPE_HOOK void* pvalloc(std::size_t size) {
  return heaptape::preload::hook_layered_acquire(
      {.call = Call::pvalloc, .size_bytes = size, .site = HEAPTAPE_CALLER},
      [=] { return real.pvalloc(size); });
}

// The three below are free() by definition; the C library does not have them everywhere (glibc dropped
// cfree in 2.26 and has no sized free up to 2.42 at least), so all go to the one that is there.
HEAPTAPE_HOOK void cfree(void* p) {
  heaptape::preload::hook_release({.call = Call::cfree, .address = address_of(p), .site = HEAPTAPE_CALLER},
                                  [=] { real.free(p); });
}

HEAPTAPE_HOOK void free_sized(void* p, std::size_t size) {
  heaptape::preload::hook_release(
      {.call = Call::free_sized, .address = address_of(p), .size_bytes = size, .site = HEAPTAPE_CALLER},
      [=] { real.free(p); });
}

HEAPTAPE_HOOK void free_aligned_sized(void* p, std::size_t alignment, std::size_t size) {
  heaptape::preload::hook_release({.call = Call::free_aligned_sized,
                                   .address = address_of(p),
                                   .size_bytes = size,
                                   .alignment = alignment,
                                   .site = HEAPTAPE_CALLER},
                                  [=] { real.free(p); });
}

HEAPTAPE_HOOK std::size_t malloc_usable_size(void* p) { return real.malloc_usable_size(p); }

// Recorded after the call like an acquire, as an event about no block.
HEAPTAPE_HOOK int malloc_trim(std::size_t pad) {
  int released = 0;
  heaptape::preload::hook_acquire({.call = Call::malloc_trim, .size_bytes = pad, .site = HEAPTAPE_CALLER},
                                  [&]() -> void* {
                                    released = real.malloc_trim(pad);
                                    return nullptr;
                                  });
  return released;
}
