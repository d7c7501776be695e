// Finding functions by name in loaded libraries.
#pragma once

#include <dlfcn.h>

#include <bit>
#include <cstddef>
#include <initializer_list>

namespace heaptape::replayer::engine {

// Null if there is none.
template <class Function>
[[nodiscard]] Function* symbol(void* library, const char* name) noexcept {
  return std::bit_cast<Function*>(::dlsym(library, name));
}

// PREFIX + NAME in `library`; null if there is none or the name is too long.
template <class Function>
[[nodiscard]] Function* symbol(void* library, const char* prefix, const char* name) noexcept {
  char whole[160];
  std::size_t length = 0;
  for (const char* part : {prefix, name}) {
    for (; *part != '\0'; ++part) {
      if (length + 1 == sizeof whole) return nullptr;
      whole[length++] = *part;
    }
  }
  whole[length] = '\0';
  return symbol<Function>(library, whole);
}

// Which file a function came from; null if it cannot be told.
[[nodiscard]] inline const char* file_of(const void* function) noexcept {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 ? info.dli_fname : nullptr;
}

}  // namespace heaptape::replayer::engine
