// A vfork child that allocates in its parent's heap before it leaves: 50 pairs of 51 bytes, after
// 50 pairs of 50 bytes and before 50 pairs of 52 bytes of the parent itself.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

static void allocate(size_t size) {
  for (int i = 0; i < 50; ++i) {
    void* block = malloc(size);
    keep(block);
    free(block);
  }
}

int main(void) {
  begin_marked();
  allocate(50);
  const pid_t child = vfork();
  if (child == 0) {
    allocate(51);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  allocate(52);
  end_marked();
  printf("child: %d\n", WEXITSTATUS(status));
  return 0;
}
