// A signal handler that leaves malloc by siglongjmp. Runs with raising_malloc preloaded, whose
// malloc(4242) raises SIGUSR1. Afterwards 1,000 pairs of 79 bytes between the marks.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"

static sigjmp_buf back;

static void jump(int signal_number) {
  (void)signal_number;
  siglongjmp(back, 1);
}

// Leaves malloc from a frame `depth` levels further down, so that later calls come from above it.
static void leave_malloc(int depth) {
  volatile char room[256];
  room[0] = (char)depth;
  if (depth > 0) {
    leave_malloc(depth - 1);
  } else {
    keep(malloc(4242));
  }
  keep((void*)&room[0]);
}

int main(void) {
  struct sigaction action = {.sa_handler = jump};
  sigaction(SIGUSR1, &action, NULL);
  for (volatile int i = 0; i < 5; ++i) {
    if (sigsetjmp(back, 1) == 0) {
      leave_malloc(i);
      puts("not left");
    } else {
      puts("left malloc");
    }
  }
  begin_marked();
  for (int i = 0; i < 1000; ++i) {
    void* block = malloc(79);
    keep(block);
    free(block);
  }
  end_marked();
  return 0;
}
