// A signal handler that allocates and frees, under a timer of 20 kHz, while the main program does
// the same. Runs with bump_malloc preloaded, which may be interrupted anywhere.
// Usage: signal_alloc PAGE CALLS [altstack]
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "guest.h"
#include "shared_page.h"

static struct SharedPage* page;

static void allocate_in_handler(int signal_number) {
  (void)signal_number;
  // Signals are blocked in here, so the handler's account has one writer at a time.
  struct ThreadAccount* account = &page->threads[1];
  count(&account->begun);
  void* block = malloc(81);
  count(&account->done);
  keep(block);
  count(&account->begun);
  free(block);
  count(&account->done);
}

int main(int argc, char** argv) {
  if (argc < 3 || (page = map_shared_page(argv[1])) == NULL) {
    return 2;
  }
  const uint64_t calls = strtoull(argv[2], NULL, 10);
  struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_RESTART};
  static char signal_stack[65536] __attribute__((aligned(16)));
  if (argc > 3 && strcmp(argv[3], "altstack") == 0) {
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&stack, NULL);
    action.sa_flags |= SA_ONSTACK;
  }
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every = {{0, 50}, {0, 50}};
  const struct itimerval never = {{0, 0}, {0, 0}};

  struct ThreadAccount* account = &page->threads[0];
  begin_marked();
  setitimer(ITIMER_REAL, &every, NULL);
  for (uint64_t i = 0; i < calls; i += 2) {
    count(&account->begun);
    void* block = malloc(80);
    count(&account->done);
    keep(block);
    count(&account->begun);
    free(block);
    count(&account->done);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  signal(SIGALRM, SIG_IGN);
  end_marked();
  page->ready = 1;
  return 0;
}
