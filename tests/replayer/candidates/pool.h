// The simplest pool for test candidates: blocks are cut from one reserved mapping and never reused.
// A 16-byte header before each block keeps its size.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { pool_header_bytes = 16 };
static const size_t pool_bytes = (size_t)4 << 30;

static char* pool_begin(void) {
  static char* begin;
  char* const seen = __atomic_load_n(&begin, __ATOMIC_ACQUIRE);
  if (seen != NULL) return seen;
  char* const fresh =
      mmap(NULL, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) abort();
  char* expected = NULL;
  if (__atomic_compare_exchange_n(&begin, &expected, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return fresh;
  munmap(fresh, pool_bytes);
  return expected;
}

static void* pool_allocate(size_t alignment, size_t size) {
  static size_t used;
  if (alignment < 16) alignment = 16;
  if (size > pool_bytes || alignment > pool_bytes) return NULL;
  const size_t most = size + alignment + pool_header_bytes + 16;
  const size_t offset = __atomic_fetch_add(&used, (most + 15) & ~(size_t)15, __ATOMIC_RELAXED);
  if (offset + most > pool_bytes) return NULL;
  uintptr_t address = (uintptr_t)pool_begin() + offset + pool_header_bytes;
  address = (address + alignment - 1) & ~(uintptr_t)(alignment - 1);
  *(size_t*)(address - pool_header_bytes) = size;
  return (void*)address;
}

static size_t pool_size(const void* block) { return *(const size_t*)((uintptr_t)block - pool_header_bytes); }

static void* pool_reallocate(void* block, size_t size) {
  void* const moved = pool_allocate(16, size);
  if (moved != NULL && block != NULL) {
    const size_t old = pool_size(block);
    memcpy(moved, block, old < size ? old : size);
  }
  return moved;
}
