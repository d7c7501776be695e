// The corners of the interface, each with what the C library under it answers.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

static const char* null_or_block(const void* p) { return p == NULL ? "null" : "block"; }

int main(void) {
  const size_t huge = opaque(PTRDIFF_MAX);
  const size_t half = opaque(SIZE_MAX / 2 + 1);
  setvbuf(stdout, NULL, _IONBF, 0);  // No buffer of the standard library among the calls.
  begin_marked();

  void* p = malloc(opaque(0));
  printf("malloc(0): %s\n", null_or_block(p));
  free(p);

  p = malloc(40);
  p = realloc(p, opaque(0));
  printf("realloc(p, 0): %s\n", null_or_block(p));
  free(p);

  p = realloc(NULL, 41);
  printf("realloc(NULL, n): %s\n", null_or_block(p));
  free(p);

  // A failed realloc leaves the old block alive and as it was.
  char* text = malloc(42);
  strcpy(text, "still here");
  p = realloc(text, huge);
  printf("failed realloc: %s, old block %s\n", null_or_block(p), text);
  free(text);

  p = calloc(half, 2);
  printf("calloc overflow: %s\n", null_or_block(p));
  p = reallocarray(NULL, half, 2);
  printf("reallocarray overflow: %s\n", null_or_block(p));
  text = malloc(43);
  strcpy(text, "alive");
  p = reallocarray(text, half, 3);
  printf("reallocarray overflow of a block: %s, old block %s\n", null_or_block(p), text);
  free(text);
  p = malloc(huge);
  printf("malloc(huge): %s\n", null_or_block(p));

  p = aligned_alloc(opaque(24), opaque(100));
  printf("aligned_alloc(24, 100): %s\n", null_or_block(p));
  free(p);
  p = memalign(opaque(48), 44);
  printf("memalign(48, 44): %s\n", null_or_block(p));
  free(p);

  p = NULL;
  int result = posix_memalign(&p, opaque(24), 45);
  printf("posix_memalign(24): %d, %s\n", result, null_or_block(p));
  result = posix_memalign(&p, opaque(2), 46);
  printf("posix_memalign(2): %d, %s\n", result, null_or_block(p));
  result = posix_memalign(&p, 64, opaque(0));
  printf("posix_memalign(64, 0): %d, %s\n", result, null_or_block(p));
  free(p);
  p = aligned_alloc(64, opaque(0));
  printf("aligned_alloc(64, 0): %s\n", null_or_block(p));
  free(p);
  printf("malloc_usable_size(NULL): %zu\n", malloc_usable_size(NULL));
  free(NULL);
  end_marked();
  return 0;
}
