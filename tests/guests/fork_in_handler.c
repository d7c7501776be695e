// Forks ten times inside a signal handler that interrupts malloc and free. Runs with bump_malloc
// preloaded. Each child allocates 20 blocks of 57 bytes and leaves.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

enum { forks_wanted = 10 };
static volatile sig_atomic_t forks;
static volatile sig_atomic_t good_children;

static void fork_in_handler(int signal_number) {
  (void)signal_number;
  if (forks >= forks_wanted) {
    return;
  }
  forks = forks + 1;
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 20; ++i) {
      void* block = malloc(57);
      keep(block);
      free(block);
    }
    _exit(9);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  good_children = good_children + (WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

int main(void) {
  struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every = {{0, 2000}, {0, 2000}};
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every, NULL);
  while (forks < forks_wanted) {
    void* block = malloc(56);
    keep(block);
    free(block);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%d forks, %d good children\n", (int)forks, (int)good_children);
  return 0;
}
