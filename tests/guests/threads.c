// COUNT threads, ALIVE of them at a time, each with a stack of STACK bytes; each makes a pair of
// calls of 77 bytes, a pair of calloc of 3 x 13, and a realloc chain of 15, 150, 1,500 bytes.
// Usage: threads COUNT ALIVE [STACK]
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"

enum { most_alive = 2000 };
static pthread_barrier_t all_alive;

static void* live(void* argument) {
  void* block = malloc(77);
  keep(block);
  pthread_barrier_wait(&all_alive);
  free(block);
  block = calloc(3, 13);
  keep(block);
  free(block);
  block = realloc(NULL, 15);
  keep(block);
  block = realloc(block, 150);
  keep(block);
  block = realloc(block, 1500);
  keep(block);
  free(block);
  return argument;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  const int alive = argc > 2 ? atoi(argv[2]) : 1;
  const size_t stack_bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 65536;
  if (alive < 1 || alive > most_alive) {
    return 2;
  }
  static pthread_t batch[most_alive];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, stack_bytes) != 0) {
    return 3;
  }
  pthread_barrier_init(&all_alive, NULL, (unsigned)alive);
  int lived = 0;
  while (lived < threads) {
    for (int i = 0; i < alive; ++i) {
      if (pthread_create(&batch[i], &attributes, live, NULL) != 0) {
        return 4;
      }
    }
    for (int i = 0; i < alive; ++i) {
      pthread_join(batch[i], NULL);
    }
    lived += alive;
  }
  printf("%d threads lived\n", lived);
  return 0;
}
