// The log that the guest `handover` writes of its own calls, and the test reads: for each thread a
// sequence of words, in the order of its calls.
//
// A file of one header, then `threads` regions of `words_per_thread` words each. A word is
// (id << 2 | what): a block's id is made by whoever allocates it, and stored in the block itself.
#ifndef HEAPTAPE_TESTS_GUESTS_HANDOVER_LOG_H
#define HEAPTAPE_TESTS_GUESTS_HANDOVER_LOG_H

#include <stdint.h>

enum { handover_most_threads = 64 };

enum HandoverWhat {
  handover_allocated = 0,     // id: the new block
  handover_freed = 1,         // id: the block freed
  handover_realloc_from = 2,  // id: the old block; directly followed by
  handover_realloc_to = 3,    // id: the new block
};

struct HandoverHeader {
  uint64_t threads;
  uint64_t words_per_thread;
  struct {
    uint64_t tid;
    uint64_t words;
  } thread[handover_most_threads];
};

#endif
