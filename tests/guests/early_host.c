// Linked against early_library; has a constructor, a destructor and an atexit function of its own.
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"

int early_library_blocks(void);

static void* block;

__attribute__((constructor)) static void construct(void) { block = malloc(173); }
__attribute__((destructor)) static void destroy(void) {
  free(block);
  free(malloc(174));
}
static void at_exit(void) { free(malloc(175)); }

int main(void) {
  atexit(at_exit);
  printf("%d\n", early_library_blocks());
  return 0;
}
