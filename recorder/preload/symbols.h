// Finds the next definition of a symbol behind this library, without dlsym.
//
// dlsym(RTLD_NEXT) would allocate when a symbol is missing, clears the error that the program may be
// about to read with dlerror(), and does not see libraries loaded with RTLD_LOCAL (a C host with a
// C++ plug-in). This walks the loaded objects and their hash tables instead: it allocates nothing and
// leaves no trace. Order: objects behind this one in load order (what RTLD_NEXT would search, then
// what was loaded later, RTLD_LOCAL or not).
// Any thread; takes the loader's recursive lock, as dl_iterate_phdr does. Cost: microseconds.
#pragma once

namespace heaptape::preload {

struct Symbol {
  void* address = nullptr;
  // False: the object may be unloaded one day, so the address must not be kept.
  bool stays = false;

  [[nodiscard]] explicit operator bool() const noexcept { return address != nullptr; }
};

[[nodiscard]] Symbol next_symbol(const char* name) noexcept;

}  // namespace heaptape::preload
