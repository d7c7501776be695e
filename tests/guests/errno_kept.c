// errno around every entry point: untouched by success and by free, set by failure.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"

enum { untouched = 4711 };

static void tell(const char* call) {
  const int seen = errno;
  if (seen == untouched) {
    printf("%s: untouched\n", call);
  } else {
    printf("%s: errno %d\n", call, seen);
  }
}

#define CHECK(statement) \
  do {                   \
    errno = untouched;   \
    statement;           \
    tell(#statement);    \
  } while (0)

int main(void) {
  void* p = NULL;
  void* q = NULL;
  const size_t huge = opaque(PTRDIFF_MAX);
  CHECK(p = malloc(100));
  CHECK(free(p));
  CHECK(p = malloc(1 << 20));
  CHECK(free(p));
  CHECK(p = calloc(10, 10));
  CHECK(q = realloc(p, 1000));
  CHECK(p = reallocarray(q, 50, 50));
  CHECK(free(p));
  CHECK((void)!posix_memalign(&p, 64, 100));
  CHECK(free(p));
  CHECK(p = aligned_alloc(64, 128));
  CHECK(free(p));
  CHECK(p = memalign(64, 128));
  CHECK(free(p));
  CHECK(p = valloc(100));
  CHECK(free(p));
  CHECK(free(NULL));
  CHECK((void)malloc_usable_size(NULL));
  CHECK((void)malloc_trim(0));

  CHECK(p = malloc(huge));
  CHECK(p = calloc(huge, 2));
  CHECK(p = realloc(NULL, huge));
  CHECK(p = reallocarray(NULL, huge, 2));
  CHECK(p = aligned_alloc(64, huge));
  // Says what went wrong by its result, never through errno.
  int result = 0;
  CHECK(result = posix_memalign(&p, 64, huge));
  printf("posix_memalign: result %d\n", result);
  CHECK(result = posix_memalign(&p, 24, 100));
  printf("posix_memalign: result %d\n", result);
  return 0;
}
