// Every way to end. Usage: exits MODE. Before the end: 500 pairs of 71 bytes, and 20 blocks of 72
// bytes that are never freed.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "guest.h"

static void at_exit(void) {
  for (int i = 0; i < 10; ++i) {
    void* block = malloc(73);
    keep(block);
    free(block);
  }
}

static void* churn(void* argument) {
  for (;;) {
    void* block = malloc(74);
    keep(block);
    free(block);
  }
  return argument;
}

static void* exit_soon(void* argument) {
  for (int i = 0; i < 20000; ++i) {
    void* block = malloc(75);
    keep(block);
    free(block);
  }
  exit(5);
  return argument;
}

static void* exit_after_main(void* argument) {
  pthread_join(*(pthread_t*)argument, NULL);
  for (int i = 0; i < 100; ++i) {
    void* block = malloc(76);
    keep(block);
    free(block);
  }
  exit(6);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "return";
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  atexit(at_exit);
  at_quick_exit(at_exit);
  for (int i = 0; i < 500; ++i) {
    void* block = malloc(71);
    keep(block);
    free(block);
  }
  for (int i = 0; i < 20; ++i) {
    keep(malloc(72));
  }
  puts(mode);
  fflush(stdout);

  if (strcmp(mode, "_exit") == 0) {
    _exit(3);
  } else if (strcmp(mode, "quick_exit") == 0) {
    quick_exit(4);
  } else if (strcmp(mode, "abort") == 0) {
    abort();
  } else if (strcmp(mode, "kill") == 0) {
    kill(getpid(), SIGKILL);
  } else if (strcmp(mode, "segv") == 0) {
    raise(SIGSEGV);
  } else if (strcmp(mode, "term") == 0) {
    raise(SIGTERM);
  } else if (strcmp(mode, "thread") == 0) {
    pthread_t thread;
    for (int i = 0; i < 3; ++i) {
      pthread_create(&thread, NULL, churn, NULL);
    }
    pthread_create(&thread, NULL, exit_soon, NULL);
    churn(NULL);
  } else if (strcmp(mode, "pthread_exit") == 0) {
    static pthread_t main_thread;
    main_thread = pthread_self();
    pthread_t thread;
    pthread_create(&thread, NULL, exit_after_main, &main_thread);
    pthread_exit(NULL);
  }
  return 7;
}
