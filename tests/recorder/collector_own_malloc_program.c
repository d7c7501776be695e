/* A program with an allocator of its own, as one with jemalloc linked in statically. */
#include <stddef.h>

static char arena[1 << 16];
static size_t used;

void* malloc(size_t size) {
  void* block = arena + used;
  used += (size + 15) & ~(size_t)15;
  return used <= sizeof arena ? block : NULL;
}
void free(void* block) { (void)block; }

int main(void) { return malloc(1) == NULL; }
