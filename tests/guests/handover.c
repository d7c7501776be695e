// Threads that hand over, free and reallocate each other's blocks at random, through a table of
// slots that all of them exchange blocks with.
// Usage: handover THREADS CALLS [LOG]. CALLS allocator calls in all (a realloc is one), shared
// evenly; then the first thread frees what is left. With LOG, each call is logged: handover_log.h.
#include "handover_log.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest.h"

enum { slots = 1024 };
// Exchanged with acquire and release: a block's id is visible to whoever takes the block.
static _Atomic(uint64_t*) table[slots];
static struct HandoverHeader* header;  // NULL: no log
static uint64_t calls_per_thread;
static pthread_barrier_t barrier;

struct Worker {
  uint64_t number;
  uint64_t* log;
  uint64_t words;
  uint64_t next_id;
  uint64_t random;
};

static void note(struct Worker* worker, uint64_t id, enum HandoverWhat what) {
  if (worker->log != NULL && worker->words < header->words_per_thread) {
    worker->log[worker->words++] = id << 2 | what;
  }
}

static uint64_t fresh_id(struct Worker* worker) { return worker->number << 40 | ++worker->next_id; }

static size_t random_size(struct Worker* worker) {
  const uint64_t random = next_random(&worker->random) >> 32;
  // Mostly small, so that addresses come back soon; a few large.
  return 8 + (random % 64 == 0 ? random % 5000 : random % 120);
}

static uint64_t* allocate(struct Worker* worker) {
  const size_t size = random_size(worker);
  void* block = NULL;
  switch (next_random(&worker->random) % 8) {
    case 0:
      block = calloc(1, size);
      break;
    case 1:
      block = memalign(32, size);
      break;
    default:
      block = malloc(size);
      break;
  }
  if (block == NULL) {
    abort();
  }
  const uint64_t id = fresh_id(worker);
  memcpy(block, &id, sizeof id);
  note(worker, id, handover_allocated);
  return block;
}

static void release(struct Worker* worker, uint64_t* block) {
  note(worker, *block, handover_freed);
  free(block);
}

static uint64_t* resize(struct Worker* worker, uint64_t* block) {
  note(worker, *block, handover_realloc_from);
  block = realloc(block, random_size(worker));
  if (block == NULL) {
    abort();
  }
  *block = fresh_id(worker);
  note(worker, *block, handover_realloc_to);
  return block;
}

static uint64_t* exchange(struct Worker* worker, uint64_t* block) {
  return atomic_exchange_explicit(&table[(next_random(&worker->random) >> 20) % slots], block,
                                  memory_order_acq_rel);
}

static void* work(void* argument) {
  struct Worker* worker = argument;
  worker->random = worker->number * 977 + 1;
  if (header != NULL) {
    header->thread[worker->number].tid = (uint64_t)gettid();
  }
  pthread_barrier_wait(&barrier);
  for (uint64_t calls = 0; calls < calls_per_thread;) {
    uint64_t* taken = NULL;
    switch (next_random(&worker->random) % 4) {
      case 0:
      case 1:  // a new block in, whatever was there out
        taken = exchange(worker, allocate(worker));
        ++calls;
        break;
      case 2:  // resized, probably another thread's, and handed on
        taken = exchange(worker, NULL);
        if (taken != NULL) {
          taken = exchange(worker, resize(worker, taken));
          ++calls;
        }
        break;
      default:
        taken = exchange(worker, NULL);
        break;
    }
    if (taken != NULL && calls < calls_per_thread) {
      release(worker, taken);
      ++calls;
    } else if (taken != NULL) {
      // The quota is reached: hand it back instead, on and on until a slot was empty.
      while (taken != NULL) {
        taken = exchange(worker, taken);
      }
    }
  }
  pthread_barrier_wait(&barrier);
  if (worker->number == 0) {
    for (int i = 0; i < slots; ++i) {
      uint64_t* block = atomic_exchange_explicit(&table[i], NULL, memory_order_acq_rel);
      if (block != NULL) {
        release(worker, block);
      }
    }
  }
  if (header != NULL) {
    header->thread[worker->number].words = worker->words;
  }
  return NULL;
}

int main(int argc, char** argv) {
  const uint64_t threads = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
  const uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000000;
  if (threads < 1 || threads > handover_most_threads) {
    return 2;
  }
  calls_per_thread = calls / threads;
  const uint64_t words = calls_per_thread * 2 + slots + 16;
  if (argc > 3) {
    const size_t bytes = sizeof *header + threads * words * sizeof(uint64_t);
    const int fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
      return 3;
    }
    header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (header == MAP_FAILED) {
      return 4;
    }
    header->threads = threads;
    header->words_per_thread = words;
  }
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  static struct Worker workers[handover_most_threads];
  static pthread_t ids[handover_most_threads];
  for (uint64_t i = 0; i < threads; ++i) {
    workers[i].number = i;
    workers[i].log = header == NULL ? NULL : (uint64_t*)(header + 1) + i * words;
    if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0) {
      return 5;
    }
  }
  for (uint64_t i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
  }
  printf("%llu calls\n", (unsigned long long)(calls_per_thread * threads));
  return 0;
}
