// The counting preload: see counter.h. For tests only; forwards everything to the next allocator.
#include "counter.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct CounterPage unmapped;           // where nobody asked for a page
static struct CounterPage* page = &unmapped;  // set before any call is counted
static __thread int depth __attribute__((tls_model("initial-exec")));
static atomic_bool ready;  // partner: itself; set once by the first caller

typedef void* (*Acquire1)(size_t);
typedef void* (*Acquire2)(size_t, size_t);
static struct {
  Acquire1 malloc, valloc, pvalloc;
  Acquire2 calloc, aligned_alloc, memalign;
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  void (*free)(void*);
  int (*malloc_trim)(size_t);
} next;

static void map_page(void) {
  const char* prefix = getenv(HEAPTAPE_COUNTER_VARIABLE);
  if (prefix == NULL) {
    return;
  }
  char path[1024];
  int fd = -1;
  for (int n = 0; n < 1000 && fd < 0; ++n) {
    snprintf(path, sizeof path, "%s.%d.%d", prefix, (int)getpid(), n);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  if (fd < 0 || ftruncate(fd, sizeof(struct CounterPage)) != 0) {
    return;
  }
  void* mapping = mmap(NULL, sizeof(struct CounterPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapping != MAP_FAILED) {
    page = mapping;
    const ssize_t length = readlink("/proc/self/exe", page->program, sizeof page->program - 1);
    (void)length;
  }
}

static void find_next(void) {
#define FIND(name) *(void**)&next.name = dlsym(RTLD_NEXT, #name)
  FIND(malloc);
  FIND(valloc);
  FIND(pvalloc);
  FIND(calloc);
  FIND(aligned_alloc);
  FIND(memalign);
  FIND(posix_memalign);
  FIND(realloc);
  FIND(reallocarray);
  FIND(free);
  FIND(malloc_trim);
#undef FIND
}

// The first call comes from one thread, before any other can exist.
static void prepare(void) {
  if (atomic_load_explicit(&ready, memory_order_acquire)) {
    return;
  }
  const int saved = errno;
  ++depth;
  find_next();
  map_page();
  pthread_atfork(NULL, NULL, map_page);
  --depth;
  errno = saved;
  atomic_store_explicit(&ready, true, memory_order_release);
}

// A call in progress. `leave` also runs when the real call throws.
struct Call {
  enum CountedCall kind;
  bool acquires;
  bool null_argument;
  bool done;  // false when it was left by an exception
  bool succeeded;
  size_t bytes;
  void* result;
};

// Allocations inside the outermost call, until it turns out whether one of them is its result.
enum { most_inner = 64 };
static __thread struct Call inner[most_inner] __attribute__((tls_model("initial-exec")));
static __thread int inner_calls __attribute__((tls_model("initial-exec")));
static __thread int releases __attribute__((tls_model("initial-exec")));  // in progress

static void add(uint64_t* counter, uint64_t value) { __atomic_fetch_add(counter, value, __ATOMIC_RELAXED); }

static void count(const struct Call* call) {
  struct CallTotals* totals = &page->calls[call->kind];
  add(&totals->calls, 1);
  add(&totals->nulls, call->null_argument ? 1 : 0);
  if (call->acquires) {
    const bool good = call->done && call->succeeded;
    add(good ? &totals->bytes : &totals->failures, good ? call->bytes : 1);
  }
}

static void leave_inner(const struct Call* call) {
  add(&page->nested, 1);
  if (call->acquires && call->done && call->result != NULL) {
    if (inner_calls == most_inner) {
      add(&page->uncounted, 1);
    } else {
      inner[inner_calls++] = *call;
    }
  } else if (!call->acquires && releases == 0 && !call->null_argument) {
    count(call);
  }
}

static void leave(struct Call* call) {
  releases -= call->acquires ? 0 : 1;
  if (--depth != 0) {
    leave_inner(call);
    return;
  }
  for (int i = 0; i < inner_calls; ++i) {
    if (!call->done || inner[i].result != call->result) {
      count(&inner[i]);
    }
  }
  count(call);
}

static struct Call enter(enum CountedCall kind, size_t bytes) {
  prepare();
  if (depth++ == 0) {
    inner_calls = 0;
  }
  return (struct Call){.kind = kind, .acquires = true, .bytes = bytes};
}
static struct Call enter_release(enum CountedCall kind, const void* block) {
  prepare();
  if (depth++ == 0) {
    inner_calls = 0;
  }
  ++releases;
  return (struct Call){.kind = kind, .null_argument = block == NULL};
}
#define CALL __attribute__((cleanup(leave))) struct Call call

static void* acquired(struct Call* call, void* block) {
  call->done = true;
  call->succeeded = block != NULL;
  call->result = block;
  return block;
}

static size_t product(size_t count, size_t size) {
  size_t total = 0;
  return __builtin_mul_overflow(count, size, &total) ? SIZE_MAX : total;
}

// dlsym may allocate while the real functions are being found: from here, never freed.
static void* early(size_t size) {
  static char arena[65536] __attribute__((aligned(16)));
  static size_t used;
  add(&page->uncounted, 1);
  const size_t at = used;
  used += (size + 15) & ~(size_t)15;
  return used <= sizeof arena ? arena + at : NULL;
}
static bool too_early(void) { return depth > 0 && next.free == NULL; }

void* malloc(size_t size) {
  if (too_early()) {
    return early(size);
  }
  CALL = enter(counted_malloc, size);
  return acquired(&call, next.malloc(size));
}
void* calloc(size_t count, size_t size) {
  if (too_early()) {
    return early(count * size);
  }
  CALL = enter(counted_calloc, product(count, size));
  return acquired(&call, next.calloc(count, size));
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  CALL = enter(counted_posix_memalign, size);
  const int error = next.posix_memalign(result, alignment, size);
  (void)acquired(&call, error == 0 ? *result : NULL);
  return error;
}
void* aligned_alloc(size_t alignment, size_t size) {
  CALL = enter(counted_aligned_alloc, size);
  return acquired(&call, next.aligned_alloc(alignment, size));
}
void* memalign(size_t alignment, size_t size) {
  CALL = enter(counted_memalign, size);
  return acquired(&call, next.memalign(alignment, size));
}
void* valloc(size_t size) {
  CALL = enter(counted_valloc, size);
  return acquired(&call, next.valloc(size));
}
void* pvalloc(size_t size) {
  CALL = enter(counted_pvalloc, size);
  return acquired(&call, next.pvalloc(size));
}
void* realloc(void* block, size_t size) {
  CALL = enter(counted_realloc, size);
  call.null_argument = block == NULL;
  void* result = acquired(&call, next.realloc(block, size));
  // realloc(p, 0) that returns null has freed p: no failure.
  call.succeeded = result != NULL || (block != NULL && size == 0);
  return result;
}
void* reallocarray(void* block, size_t count, size_t size) {
  CALL = enter(counted_reallocarray, product(count, size));
  call.null_argument = block == NULL;
  void* result = acquired(&call, next.reallocarray(block, count, size));
  call.succeeded = result != NULL || (block != NULL && (count == 0 || size == 0));
  return result;
}

void free(void* block) {
  if (too_early()) {
    return;
  }
  CALL = enter_release(counted_free, block);
  next.free(block);
}
void cfree(void* block) {
  CALL = enter_release(counted_cfree, block);
  next.free(block);
}
void free_sized(void* block, size_t size) {
  (void)size;
  CALL = enter_release(counted_free_sized, block);
  next.free(block);
}
void free_aligned_sized(void* block, size_t alignment, size_t size) {
  (void)alignment;
  (void)size;
  CALL = enter_release(counted_free_aligned_sized, block);
  next.free(block);
}
int malloc_trim(size_t pad) {
  CALL = enter_release(counted_malloc_trim, &call);
  return next.malloc_trim == NULL ? 0 : next.malloc_trim(pad);
}

// The operators, by their mangled names. Where libstdc++ is not to be found, malloc and free.
#define NEXT_OPERATOR(type, name)             \
  static type real;                           \
  if (real == NULL) {                         \
    *(void**)&real = dlsym(RTLD_NEXT, #name); \
  }
#define NEW(name, kind)                                                    \
  void* name(size_t size) {                                                \
    CALL = enter(kind, size);                                              \
    NEXT_OPERATOR(Acquire1, name)                                          \
    return acquired(&call, real == NULL ? next.malloc(size) : real(size)); \
  }
#define NEW2(name, kind, second)                                                  \
  void* name(size_t size, second extra) {                                         \
    typedef void* (*Real)(size_t, second);                                        \
    CALL = enter(kind, size);                                                     \
    NEXT_OPERATOR(Real, name)                                                     \
    return acquired(&call, real == NULL ? next.malloc(size) : real(size, extra)); \
  }
#define NEW3(name, kind)                                                                                    \
  void* name(size_t size, size_t alignment, const void* nothrow) {                                          \
    typedef void* (*Real)(size_t, size_t, const void*);                                                     \
    CALL = enter(kind, size);                                                                               \
    NEXT_OPERATOR(Real, name)                                                                               \
    return acquired(&call, real == NULL ? next.memalign(alignment, size) : real(size, alignment, nothrow)); \
  }
#define DELETE(name, kind)                    \
  void name(void* block) {                    \
    typedef void (*Real)(void*);              \
    CALL = enter_release(kind, block);        \
    NEXT_OPERATOR(Real, name)                 \
    (real == NULL ? next.free : real)(block); \
  }
#define DELETE2(name, kind, second)      \
  void name(void* block, second extra) { \
    typedef void (*Real)(void*, second); \
    CALL = enter_release(kind, block);   \
    NEXT_OPERATOR(Real, name)            \
    if (real == NULL) {                  \
      next.free(block);                  \
    } else {                             \
      real(block, extra);                \
    }                                    \
  }
#define DELETE3(name, kind, third)                     \
  void name(void* block, size_t second, third extra) { \
    typedef void (*Real)(void*, size_t, third);        \
    CALL = enter_release(kind, block);                 \
    NEXT_OPERATOR(Real, name)                          \
    if (real == NULL) {                                \
      next.free(block);                                \
    } else {                                           \
      real(block, second, extra);                      \
    }                                                  \
  }

NEW(_Znwm, counted_operator_new)
NEW(_Znam, counted_operator_new_array)
NEW2(_ZnwmRKSt9nothrow_t, counted_operator_new_nothrow, const void*)
NEW2(_ZnamRKSt9nothrow_t, counted_operator_new_array_nothrow, const void*)
NEW2(_ZnwmSt11align_val_t, counted_operator_new, size_t)
NEW2(_ZnamSt11align_val_t, counted_operator_new_array, size_t)
NEW3(_ZnwmSt11align_val_tRKSt9nothrow_t, counted_operator_new_nothrow)
NEW3(_ZnamSt11align_val_tRKSt9nothrow_t, counted_operator_new_array_nothrow)
DELETE(_ZdlPv, counted_operator_delete)
DELETE(_ZdaPv, counted_operator_delete_array)
DELETE2(_ZdlPvm, counted_operator_delete_sized, size_t)
DELETE2(_ZdaPvm, counted_operator_delete_array_sized, size_t)
DELETE2(_ZdlPvRKSt9nothrow_t, counted_operator_delete, const void*)
DELETE2(_ZdaPvRKSt9nothrow_t, counted_operator_delete_array, const void*)
DELETE2(_ZdlPvSt11align_val_t, counted_operator_delete, size_t)
DELETE2(_ZdaPvSt11align_val_t, counted_operator_delete_array, size_t)
DELETE3(_ZdlPvSt11align_val_tRKSt9nothrow_t, counted_operator_delete, const void*)
DELETE3(_ZdaPvSt11align_val_tRKSt9nothrow_t, counted_operator_delete_array, const void*)
DELETE3(_ZdlPvmSt11align_val_t, counted_operator_delete_sized, size_t)
DELETE3(_ZdaPvmSt11align_val_t, counted_operator_delete_array_sized, size_t)
