// A C program that loads a C++ plug-in with RTLD_LOCAL: libstdc++ is not in the global scope.
// Usage: plugin_host PLUGIN
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  for (int i = 0; i < 3; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 3;
    }
    long (*work)(long) = (long (*)(long))(uintptr_t)dlsym(plugin, "plugin_work");
    if (work == NULL) {
      return 4;
    }
    printf("%ld\n", work(50));
    dlclose(plugin);
  }
  return 0;
}
