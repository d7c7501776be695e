// Every C entry point once, with arguments that the test knows.
#include <malloc.h>
#include <stdlib.h>

#include "guest.h"

// Newer or older than the C library at hand: called where somebody provides them.
extern void free_sized(void* block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void* block, size_t alignment, size_t size) __attribute__((weak));
extern void cfree(void* block) __attribute__((weak));

static void release(void* block) {
  keep(block);
  free(block);
}

int main(void) {
  begin_marked();
  release(malloc(101));
  release(calloc(7, 11));

  void* block = realloc(NULL, 103);
  keep(block);
  release(realloc(block, 207));

  block = reallocarray(NULL, 5, 21);
  keep(block);
  release(reallocarray(block, 10, 21));

  block = NULL;
  if (posix_memalign(&block, 64, 301) != 0) {
    return 1;
  }
  release(block);
  release(aligned_alloc(128, 256));
  release(memalign(32, 303));
  release(valloc(305));
  release(pvalloc(307));

  block = malloc(109);
  if (malloc_usable_size(block) < 109) {
    return 2;
  }
  if (free_sized != NULL) {
    free_sized(block, 109);
  } else {
    free(block);
  }
  block = aligned_alloc(64, 192);
  if (free_aligned_sized != NULL) {
    free_aligned_sized(block, 64, 192);
  } else {
    free(block);
  }
  block = malloc(111);
  if (cfree != NULL) {
    cfree(block);
  } else {
    free(block);
  }
  free(NULL);
  malloc_trim(0);
  end_marked();
  return 0;
}
