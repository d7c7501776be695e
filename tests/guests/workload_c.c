// A deterministic single-threaded C program: some hundred thousand calls of every kind, directly
// and through the C library (strdup, asprintf, getline, qsort, standard I/O). Usage: workload_c [ROUNDS]
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { slots = 512 };
static void* blocks[slots];

static int compare(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a;
  const uint64_t y = *(const uint64_t*)b;
  return x < y ? -1 : x > y;
}

static void* allocate(uint64_t random) {
  const size_t size = (random >> 8) % (random % 100 == 0 ? 300000 : 700);
  void* block = NULL;
  switch (random % 10) {
    case 0:
      return calloc(size % 9 + 1, size / 9);
    case 1:
      return aligned_alloc(64, (size + 63) & ~(size_t)63);
    case 2:
      return memalign(256, size);
    case 3:
      return posix_memalign(&block, 4096, size) == 0 ? block : NULL;
    case 4:
      return random % 7 == 0 ? valloc(size) : malloc(size);
    default:
      return malloc(size);
  }
}

static uint64_t through_the_library(uint64_t random) {
  char* text = NULL;
  const int length = asprintf(&text, "%llu-%s", (unsigned long long)random, "text");
  char* copy = strdup(text);
  const uint64_t sum = (uint64_t)length + strlen(copy);
  free(text);
  free(copy);
  uint64_t* numbers = malloc(2000 * sizeof *numbers);
  for (int i = 0; i < 2000; ++i) {
    numbers[i] = next_random(&random);
  }
  qsort(numbers, 2000, sizeof *numbers, compare);
  const uint64_t middle = numbers[1000];
  free(numbers);
  return sum + middle;
}

static uint64_t read_lines(void) {
  FILE* file = tmpfile();
  if (file == NULL) {
    return 0;
  }
  for (int i = 0; i < 200; ++i) {
    fprintf(file, "%*d\n", i, i);
  }
  rewind(file);
  char* line = NULL;
  size_t capacity = 0;
  uint64_t sum = 0;
  while (getline(&line, &capacity, file) > 0) {
    sum += strlen(line);
  }
  free(line);
  fclose(file);
  return sum;
}

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? atol(argv[1]) : 200000;
  uint64_t random = 88172645463325252U;
  uint64_t sum = read_lines();
  for (long i = 0; i < rounds; ++i) {
    const uint64_t r = next_random(&random) >> 16;
    void** slot = &blocks[r % slots];
    if (r % 13 == 0) {
      *slot = realloc(*slot, (r >> 9) % 1500 + 1);
    } else if (r % 17 == 0) {
      *slot = reallocarray(*slot, (r >> 9) % 20 + 1, 24);
    } else {
      free(*slot);
      *slot = r % 3 == 0 ? NULL : allocate(r);
    }
    if (i % 1000 == 0) {
      sum += through_the_library(r);
      free(malloc(opaque(PTRDIFF_MAX)));
      free(calloc(opaque(PTRDIFF_MAX), 3));
      malloc_trim(0);
    }
  }
  for (int i = 0; i < slots; i += 2) {
    free(blocks[i]);
  }
  printf("%llx\n", (unsigned long long)sum);
  return 0;
}
