// Threads that count their own allocator calls in a shared page, until somebody kills them or
// TENTHS tenths of a second are over. Usage: counted PAGE THREADS TENTHS
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "shared_page.h"

enum { slots = 256 };
static struct SharedPage* page;
static _Atomic(void*) table[slots];  // blocks handed from thread to thread
static atomic_int stop;              // set by main, read by all
static pthread_barrier_t barrier;

static void* work(void* argument) {
  const uintptr_t number = (uintptr_t)argument;
  struct ThreadAccount* account = &page->threads[number];
  account->tid = (uint64_t)gettid();
  uint64_t random = number * 7919 + 1;
  pthread_barrier_wait(&barrier);
  while (atomic_load_explicit(&stop, memory_order_relaxed) == 0) {
    const uint64_t r = next_random(&random) >> 32;
    void* block = NULL;
    count(&account->begun);
    block = r % 5 == 0 ? calloc(1, r % 300 + 1) : malloc(r % 300 + 1);
    count(&account->done);
    block = atomic_exchange_explicit(&table[r % slots], block, memory_order_acq_rel);
    if (block != NULL && r % 3 == 0) {
      count(&account->begun);
      block = realloc(block, r % 900 + 1);
      count(&account->done);
    }
    if (block != NULL) {
      count(&account->begun);
      free(block);
      count(&account->done);
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4 || (page = map_shared_page(argv[1])) == NULL) {
    return 2;
  }
  const unsigned threads = (unsigned)atoi(argv[2]);
  if (threads < 1 || threads > shared_page_threads) {
    return 2;
  }
  pthread_barrier_init(&barrier, NULL, threads + 1);
  static pthread_t ids[shared_page_threads];
  for (uintptr_t i = 0; i < threads; ++i) {
    pthread_create(&ids[i], NULL, work, (void*)i);
  }
  pthread_barrier_wait(&barrier);
  page->ready = 1;
  const int tenths = atoi(argv[3]);
  const struct timespec time = {tenths / 10, tenths % 10 * 100000000L};
  nanosleep(&time, NULL);
  atomic_store_explicit(&stop, 1, memory_order_relaxed);
  for (unsigned i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
  }
  puts("finished");
  return 0;
}
