// An allocator for the test below it: like the C library's, but malloc(4242) raises SIGUSR1 first.
// To be preloaded: lets a guest leave malloc by siglongjmp where no lock is held.
#include <signal.h>
#include <stddef.h>

extern void* __libc_malloc(size_t size);

void* malloc(size_t size) {
  if (size == 4242) {
    raise(SIGUSR1);
  }
  return __libc_malloc(size);
}
