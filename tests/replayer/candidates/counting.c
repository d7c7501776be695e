// Counts the calls between heaptape_mark(1) and heaptape_mark(0), by kind, and writes them as one
// line to the file that HEAPTAPE_COUNTS names. Built twice: with names of its own (counted_malloc,
// ...), and as a library that replaces malloc.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "pool.h"

#ifdef REPLACES_MALLOC
#define NAME(function) function
#else
#define NAME(function) counted_##function
#endif

enum Kind { kind_malloc, kind_calloc, kind_aligned, kind_realloc, kind_free, kind_usable, kinds };
static uint64_t counts[kinds];

static void count(enum Kind kind) { __atomic_fetch_add(&counts[kind], 1, __ATOMIC_RELAXED); }

void* NAME(malloc)(size_t size);
void* NAME(calloc)(size_t number, size_t size);
void* NAME(memalign)(size_t alignment, size_t size);
void* NAME(aligned_alloc)(size_t alignment, size_t size);
int NAME(posix_memalign)(void** block, size_t alignment, size_t size);
void* NAME(realloc)(void* block, size_t size);
void NAME(free)(void* block);
size_t NAME(malloc_usable_size)(void* block);
void heaptape_mark(int running);

void* NAME(malloc)(size_t size) {
  count(kind_malloc);
  return pool_allocate(16, size);
}
void* NAME(calloc)(size_t number, size_t size) {
  count(kind_calloc);
  size_t bytes = 0;
  return __builtin_mul_overflow(number, size, &bytes) ? NULL : pool_allocate(16, bytes);
}
void* NAME(memalign)(size_t alignment, size_t size) {
  count(kind_aligned);
  return pool_allocate(alignment, size);
}
void* NAME(aligned_alloc)(size_t alignment, size_t size) {
  count(kind_aligned);
  return pool_allocate(alignment, size);
}
int NAME(posix_memalign)(void** block, size_t alignment, size_t size) {
  count(kind_aligned);
  *block = pool_allocate(alignment, size);
  return *block == NULL ? ENOMEM : 0;
}
void* NAME(realloc)(void* block, size_t size) {
  count(kind_realloc);
  return pool_reallocate(block, size);
}
void NAME(free)(void* block) {
  (void)block;
  count(kind_free);
}
size_t NAME(malloc_usable_size)(void* block) {
  count(kind_usable);
  return block == NULL ? 0 : pool_size(block);
}

static size_t put_number(char* to, uint64_t number) {
  char digits[20];
  size_t length = 0;
  do {
    digits[length++] = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  for (size_t i = 0; i < length; ++i) to[i] = digits[length - 1 - i];
  to[length] = ' ';
  return length + 1;
}

void heaptape_mark(int running) {
  if (running) {
    for (int kind = 0; kind < kinds; ++kind) __atomic_store_n(&counts[kind], 0, __ATOMIC_RELAXED);
    return;
  }
  char line[200];
  size_t length = 0;
  for (int kind = 0; kind < kinds; ++kind)
    length += put_number(line + length, __atomic_load_n(&counts[kind], __ATOMIC_RELAXED));
  const char* const path = getenv("HEAPTAPE_COUNTS");
  const int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, line, length) != (ssize_t)length) abort();
  close(file);
}
