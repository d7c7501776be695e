// A file that a guest maps and writes its own account into, so that the account outlives any death
// of the guest; the test reads it. One cache line per thread, written by that thread alone.
#ifndef HEAPTAPE_TESTS_GUESTS_SHARED_PAGE_H
#define HEAPTAPE_TESTS_GUESTS_SHARED_PAGE_H

#include <stdint.h>

enum { shared_page_threads = 64 };

struct ThreadAccount {
  uint64_t tid;
  uint64_t begun;  // calls begun: raised before each allocator call
  uint64_t done;   // calls done: raised after each
  uint64_t padding[5];
};

struct SharedPage {
  uint64_t pid;
  uint64_t ready;  // 1: all threads are at work
  uint64_t padding[6];
  struct ThreadAccount threads[shared_page_threads];
};

#ifndef __cplusplus
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

// NULL where the file cannot be made or mapped.
static inline struct SharedPage* map_shared_page(const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct SharedPage)) != 0) {
    return NULL;
  }
  void* page = mmap(NULL, sizeof(struct SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) {
    return NULL;
  }
  struct SharedPage* shared = page;
  shared->pid = (uint64_t)getpid();
  return shared;
}

// Counting around a call. A volatile access is enough: only this thread writes, and whoever reads
// it does so after the thread is dead.
static inline void count(volatile uint64_t* counter) { *counter = *counter + 1; }
#endif

#endif
