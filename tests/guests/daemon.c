// A daemon: forks, leaves its session, closes every descriptor, opens the same numbers again, and
// allocates 300 pairs of 83 bytes. Writes daemon.txt in the directory it was started in; the
// process that was started waits for that file (for at most ten seconds).
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"

static void be_daemon(const char* place) {
  setsid();
  if (fork() != 0) {
    _exit(0);
  }
  if (chdir("/") != 0) {
    _exit(2);
  }
  for (int fd = 0; fd < 256; ++fd) {
    close(fd);
  }
  for (int fd = 0; fd < 16; ++fd) {
    if (open("/dev/null", O_RDWR) != fd) {
      _exit(3);
    }
  }
  for (int i = 0; i < 300; ++i) {
    void* block = malloc(83);
    keep(block);
    free(block);
  }
  char temporary[4200];
  char final[4200];
  snprintf(temporary, sizeof temporary, "%s/daemon.tmp", place);
  snprintf(final, sizeof final, "%s/daemon.txt", place);
  const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const char* text = fd == 16 ? "the daemon's descriptors are its own\n" : "a foreign descriptor\n";
  const ssize_t written = write(fd, text, strlen(text));
  close(fd);
  if (written > 0) {
    rename(temporary, final);
  }
  _exit(0);
}

int main(void) {
  char place[4096];
  if (getcwd(place, sizeof place) == NULL) {
    return 2;
  }
  if (fork() == 0) {
    be_daemon(place);
  }
  struct stat status;
  for (int i = 0; i < 1000; ++i) {
    if (stat("daemon.txt", &status) == 0) {
      puts("the daemon has written");
      return 0;
    }
    usleep(10000);
  }
  return 3;
}
