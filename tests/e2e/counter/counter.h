// What the counting preload writes and the tests read: one page per process image.
//
// The counter is the oracle for totals, so it shares nothing with the recorder: no header, no
// numbering, no method (a thread-local depth instead of stack addresses, a mapped file instead of
// rings). It counts a call when it returns. A call inside a call counts only if the outer one is not
// made of it: an allocation whose block is not the outer one's result (the exception object of a
// throwing new), or a release inside an allocation (by a new-handler).
#ifndef HEAPTAPE_TESTS_E2E_COUNTER_H
#define HEAPTAPE_TESTS_E2E_COUNTER_H

#include <stdint.h>

// In the order of `CounterPage::calls`; the names are those of `kind_key`.
// The formatter never comes to rest on this list.
// clang-format off
#define HEAPTAPE_COUNTED_CALLS(X) \
  X(malloc) \
  X(calloc) \
  X(posix_memalign) \
  X(aligned_alloc) \
  X(memalign) \
  X(valloc) \
  X(pvalloc) \
  X(operator_new) \
  X(operator_new_array) \
  X(operator_new_nothrow) \
  X(operator_new_array_nothrow) \
  X(realloc) \
  X(reallocarray) \
  X(free) \
  X(cfree) \
  X(free_sized) \
  X(free_aligned_sized) \
  X(operator_delete) \
  X(operator_delete_array) \
  X(operator_delete_sized) \
  X(operator_delete_array_sized) \
  X(malloc_trim)
// clang-format on

enum CountedCall {
#define HEAPTAPE_COUNTED_ENUM(name) counted_##name,
  HEAPTAPE_COUNTED_CALLS(HEAPTAPE_COUNTED_ENUM)
#undef HEAPTAPE_COUNTED_ENUM
      counted_calls
};

struct CallTotals {
  uint64_t calls;
  uint64_t failures;  // null results, thrown bad_alloc
  uint64_t bytes;     // requested, of the calls that succeeded
  uint64_t nulls;     // releases of NULL, reallocs of NULL
};

struct CounterPage {
  struct CallTotals calls[counted_calls];
  uint64_t nested;     // calls inside calls
  uint64_t uncounted;  // calls before the counter was ready: must be 0
  char program[512];   // /proc/self/exe
};

// Environment: path prefix of the pages; each image writes PREFIX.PID.N, N = 0, 1, ...
#define HEAPTAPE_COUNTER_VARIABLE "HEAPTAPE_TEST_COUNTER"

#endif
