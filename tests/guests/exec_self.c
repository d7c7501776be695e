// Becomes another program. Usage: exec_self execv|clear|spawn|vfork|system
// The first image allocates 10 blocks of 91 bytes, the second 20 of 92. `clear` hands an empty
// environment on; `spawn` and `vfork` start the second image as a child, `system` through a shell.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

extern char** environ;

static void allocate(int blocks, size_t size) {
  for (int i = 0; i < blocks; ++i) {
    void* block = malloc(size);
    keep(block);
    free(block);
  }
}

static int finish(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  printf("child: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) {
    return 3;
  }
  self[length] = '\0';
  char second_argument[] = "second";
  char* second[] = {self, second_argument, NULL};
  const char* how = argv[1];

  if (strcmp(how, "second") == 0) {
    allocate(20, 92);
    puts("second image");
    return 5;
  }
  allocate(10, 91);
  if (strcmp(how, "execv") == 0) {
    execv(self, second);
  } else if (strcmp(how, "clear") == 0) {
    char* nothing[] = {NULL};
    execve(self, second, nothing);
  } else if (strcmp(how, "spawn") == 0) {
    pid_t child = 0;
    if (posix_spawn(&child, self, NULL, NULL, second, environ) == 0) {
      return finish(child);
    }
  } else if (strcmp(how, "vfork") == 0) {
    const pid_t child = vfork();
    if (child == 0) {
      execv(self, second);
      _exit(127);
    }
    return finish(child);
  } else if (strcmp(how, "system") == 0) {
    char line[4200];
    snprintf(line, sizeof line, "'%s' second", self);
    const int status = system(line);
    printf("child: %d\n", WEXITSTATUS(status));
    return 0;
  }
  return 4;
}
