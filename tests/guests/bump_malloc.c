// An allocator that may be called anywhere, also in a signal handler that interrupts itself:
// hands out fresh addresses by one atomic addition and never takes one back. To be preloaded.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARENA_BYTES (UINT64_C(1) << 30)
static char arena[ARENA_BYTES] __attribute__((aligned(4096)));
static atomic_uint_fast64_t used;  // partner: itself; every call takes its own range

static void* take(size_t alignment, size_t size) {
  if (size > ARENA_BYTES / 2) {
    errno = ENOMEM;
    return NULL;
  }
  // 16 bytes in front keep the size for realloc.
  const uint64_t span = 16 + alignment + ((size + 15) & ~UINT64_C(15));
  const uint64_t at = atomic_fetch_add_explicit(&used, span, memory_order_relaxed);
  if (at + span > ARENA_BYTES) {
    errno = ENOMEM;
    return NULL;
  }
  const uintptr_t start = (uintptr_t)arena + at + 16;
  char* block = (char*)((start + alignment - 1) & ~(uintptr_t)(alignment - 1));
  memcpy(block - 16, &size, sizeof size);
  return block;
}

void* malloc(size_t size) { return take(16, size); }
void free(void* block) { (void)block; }
void* calloc(size_t count, size_t size) {
  size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  return take(16, total);
}
void* realloc(void* old, size_t size) {
  void* block = take(16, size);
  if (old != NULL && block != NULL) {
    size_t old_size = 0;
    memcpy(&old_size, (char*)old - 16, sizeof old_size);
    memcpy(block, old, old_size < size ? old_size : size);
  }
  return block;
}
void* memalign(size_t alignment, size_t size) { return take(alignment < 16 ? 16 : alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** result, size_t alignment, size_t size) {
  *result = memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}
