// A library whose constructor and destructor allocate: the first before any preloaded library's
// own constructor has run, the second after its destructor.
#include <stdlib.h>

#include "guest.h"

static void* from_constructor[10];

__attribute__((constructor)) static void construct(void) {
  for (int i = 0; i < 10; ++i) {
    from_constructor[i] = malloc(171);
  }
}

__attribute__((destructor)) static void destroy(void) {
  for (int i = 0; i < 10; ++i) {
    free(from_constructor[i]);
    void* block = malloc(172);
    keep(block);
    free(block);
  }
}

int early_library_blocks(void) { return 10; }
