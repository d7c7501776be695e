// Misbehaves as HEAPTAPE_FAULT says, on every seventh call that asks for memory: "null" refuses,
// "misaligned" is off by one word; "crash" writes to address 0 at the hundredth malloc.
// There is no function for aligned blocks under the prefix `bare_`, and no calloc either.
#include "pool.h"

static uint64_t calls;
static char fault;

__attribute__((constructor)) static void read_fault(void) {
  const char* const text = getenv("HEAPTAPE_FAULT");
  fault = text == NULL ? '\0' : text[0];
}

void* faulty_malloc(size_t size);
void* faulty_calloc(size_t number, size_t size);
int faulty_posix_memalign(void** block, size_t alignment, size_t size);
void* faulty_realloc(void* block, size_t size);
void faulty_free(void* block);
void* bare_malloc(size_t size);
void* bare_realloc(void* block, size_t size);
void bare_free(void* block);

static int seventh(void) { return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 7 == 0; }

static void* spoil(size_t alignment, size_t size) {
  const int now = seventh();
  if (now && fault == 'n') return NULL;
  if (fault == 'c' && calls >= 100) *(volatile char*)0 = 1;
  if (!(now && fault == 'm')) return pool_allocate(alignment, size);
  char* const block = pool_allocate(alignment, size + 16);
  if (block == NULL) return NULL;
  memcpy(block - 8, &size, sizeof size);  // where pool_size of the shifted block looks
  return block + 8;
}

void* faulty_malloc(size_t size) { return spoil(16, size); }
void* faulty_calloc(size_t number, size_t size) { return spoil(16, number * size); }
int faulty_posix_memalign(void** block, size_t alignment, size_t size) {
  *block = spoil(alignment, size);
  return *block == NULL;
}
void* faulty_realloc(void* block, size_t size) {
  void* const moved = spoil(16, size);
  if (moved != NULL && block != NULL) {
    const size_t old = pool_size(block);
    memcpy(moved, block, old < size ? old : size);
  }
  return moved;
}
void faulty_free(void* block) { (void)block; }

void* bare_malloc(size_t size) {
  void* const block = pool_allocate(16, size);
  if (block != NULL) memset(block, 0xEE, size);
  return block;
}
void* bare_realloc(void* block, size_t size) { return pool_reallocate(block, size); }
void bare_free(void* block) { (void)block; }
