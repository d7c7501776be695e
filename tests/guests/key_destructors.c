// Threads that free and allocate in the destructors of thread-specific keys, in all four passes.
// Usage: key_destructors THREADS. Per thread and key: four blocks of 61 bytes, all freed; the last
// key of each thread holds one block of 62 bytes more, left over after the last pass.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"

enum { keys = 8 };
static pthread_key_t key[keys];
static __thread int passes[keys];

static void destroy(int k, void* block) {
  free(block);
  if (++passes[k] < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(key[k], malloc(61));
  } else if (k == keys - 1) {
    pthread_setspecific(key[k], malloc(62));
  }
}
// One destructor for each key, for a destructor is not told which key it serves.
#define DESTROY(K) \
  static void destroy_##K(void* block) { destroy(K, block); }
DESTROY(0)
DESTROY(1)
DESTROY(2)
DESTROY(3)
DESTROY(4)
DESTROY(5)
DESTROY(6)
DESTROY(7)

static void* live(void* argument) {
  for (int k = 0; k < keys; ++k) {
    pthread_setspecific(key[k], malloc(61));
  }
  return argument;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  void (*const destructors[keys])(void*) = {destroy_0, destroy_1, destroy_2, destroy_3,
                                            destroy_4, destroy_5, destroy_6, destroy_7};
  for (int k = 0; k < keys; ++k) {
    pthread_key_create(&key[k], destructors[k]);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, live, NULL) != 0) {
      return 1;
    }
    pthread_join(thread, NULL);
  }
  printf("%d threads\n", threads);
  return 0;
}
