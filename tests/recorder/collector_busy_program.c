/* Allocates and frees as fast as it can, a given number of times; ends with a line on its output. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  enum { window = 10000 };
  static void* blocks[window];
  uint64_t state = 88172645463325252u;
  long n = argc > 1 ? atol(argv[1]) : 1000;
  for (long i = 0; i < n; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    void** block = &blocks[(state >> 20) % window];
    free(*block);
    *block = malloc(16 + (state >> 40) % 497);
  }
  puts("done");
  return 0;
}
