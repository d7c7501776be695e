// An allocator that serves a hundred blocks and then crashes: `-a crash=THIS,prefix=crash_`.
#include <stddef.h>
#include <stdlib.h>

static int calls;

void* crash_malloc(size_t size) {
  if (++calls > 100) {
    *(volatile int*)NULL = 0;
  }
  return malloc(size);
}
void crash_free(void* block) { free(block); }
void* crash_calloc(size_t count, size_t size) { return calloc(count, size); }
void* crash_realloc(void* block, size_t size) { return realloc(block, size); }
void* crash_memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
