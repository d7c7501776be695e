// Forks twenty times while four threads allocate. Each child allocates 100 blocks of 53 bytes; the
// first two children start a thread of their own, and one forks again.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { children = 20, churners = 4 };
static atomic_int stop;  // set by main, read by every churner

static void* churn(void* argument) {
  uint64_t random = (uintptr_t)argument + 1;
  while (atomic_load_explicit(&stop, memory_order_relaxed) == 0) {
    for (int i = 0; i < 100; ++i) {
      void* block = malloc(600 + next_random(&random) % 500);
      keep(block);
      free(block);
    }
    const struct timespec pause = {0, 50000};  // enough calls to fork between, not all there can be
    nanosleep(&pause, NULL);
  }
  return NULL;
}

static void* in_child_thread(void* argument) {
  for (int i = 0; i < 50; ++i) {
    void* block = malloc(54);
    keep(block);
    free(block);
  }
  return argument;
}

static void live_as_child(int number) {
  for (int i = 0; i < 100; ++i) {
    void* block = malloc(53);
    keep(block);
    free(block);
  }
  if (number < 2) {
    pthread_t thread;
    pthread_create(&thread, NULL, in_child_thread, NULL);
    pthread_join(thread, NULL);
  }
  if (number == 1) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      for (int i = 0; i < 10; ++i) {
        void* block = malloc(55);
        keep(block);
        free(block);
      }
      _exit(0);
    }
    waitpid(grandchild, NULL, 0);
  }
  _exit(number);
}

int main(void) {
  pthread_t threads[churners];
  for (uintptr_t i = 0; i < churners; ++i) {
    pthread_create(&threads[i], NULL, churn, (void*)i);
  }
  int sum = 0;
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      live_as_child(i);
    }
    int status = 0;
    waitpid(child, &status, 0);
    sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  }
  atomic_store_explicit(&stop, 1, memory_order_relaxed);
  for (int i = 0; i < churners; ++i) {
    pthread_join(threads[i], NULL);
  }
  printf("sum of the children's statuses: %d\n", sum);
  return 0;
}
