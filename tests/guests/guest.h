// What every guest shares. Header only, C and C++; allocates nothing but the two marks.
//
// The marks bound the calls that a test looks at one by one: a guest's run-up (standard I/O, the
// loader) differs between C libraries, what lies between the marks does not.
#ifndef HEAPTAPE_TESTS_GUESTS_GUEST_H
#define HEAPTAPE_TESTS_GUESTS_GUEST_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { begin_mark_bytes = 12347, end_mark_bytes = 12373 };

// Tells the compiler that `block` is used, so that no allocation is optimised away.
static inline void keep(void* block) { __asm__ volatile("" : : "g"(block) : "memory"); }

// A size that the compiler cannot see through, so that it warns of no absurd size and folds none.
static inline size_t opaque(size_t size) {
  __asm__ volatile("" : "+r"(size));
  return size;
}

static inline void mark(size_t size) {
  void* block = malloc(size);
  keep(block);
  free(block);
}
static inline void begin_marked(void) { mark(begin_mark_bytes); }
static inline void end_marked(void) { mark(end_mark_bytes); }

// xorshift64*: the same sequence everywhere.
static inline uint64_t next_random(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

#endif
