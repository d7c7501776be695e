// Maps each block separately: one page for its header, then the block from the next page on. So what
// is resident is known exactly: the header's page, and the block's pages as far as they were touched.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static const size_t page = 4096;

struct Header {
  void* mapping;
  size_t mapped_bytes;
  size_t size;
};

void* mapping_malloc(size_t size);
void* mapping_calloc(size_t number, size_t size);
void* mapping_memalign(size_t alignment, size_t size);
void* mapping_realloc(void* block, size_t size);
void mapping_free(void* block);
size_t mapping_malloc_usable_size(void* block);

static struct Header* header_of(void* block) { return (struct Header*)((char*)block - page); }

void* mapping_memalign(size_t alignment, size_t size) {
  if (size > SIZE_MAX / 2 || alignment > page) return NULL;
  const size_t bytes = page + (size + page - 1) / page * page;
  char* const mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return NULL;
  *(struct Header*)mapping = (struct Header){mapping, bytes, size};
  return mapping + page;
}

void* mapping_malloc(size_t size) { return mapping_memalign(16, size); }

void* mapping_calloc(size_t number, size_t size) {
  size_t bytes = 0;
  return __builtin_mul_overflow(number, size, &bytes) ? NULL : mapping_malloc(bytes);
}

void mapping_free(void* block) {
  if (block == NULL) return;
  const struct Header header = *header_of(block);
  munmap(header.mapping, header.mapped_bytes);
}

void* mapping_realloc(void* block, size_t size) {
  void* const moved = mapping_malloc(size);
  if (moved == NULL || block == NULL) return moved;
  const size_t old = header_of(block)->size;
  memcpy(moved, block, old < size ? old : size);
  mapping_free(block);
  return moved;
}

size_t mapping_malloc_usable_size(void* block) {
  return block == NULL ? 0 : header_of(block)->mapped_bytes - page;
}
