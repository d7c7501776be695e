// Finds the library that goes into the recorded program, under a path LD_PRELOAD can hold.
//
// Guarantees: the path has neither blank nor colon (the loader would split it there): where the
// real one has, it is a symbolic link in a private temporary directory, which lives as long as this
// object. Move-only.
#pragma once

#include <filesystem>
#include <string>

#include "format/base/error.h"

namespace heaptape::collector {

class PreloadLibrary {
 public:
  // HEAPTAPE_PRELOAD, else ../lib or ../lib/heaptape beside the program `self`.
  [[nodiscard]] static format::Result<PreloadLibrary> find(const std::filesystem::path& self);

  PreloadLibrary(PreloadLibrary&& other) noexcept;
  PreloadLibrary& operator=(PreloadLibrary&&) = delete;
  ~PreloadLibrary();

  // What LD_PRELOAD must be for a program: the library, then what it was before.
  [[nodiscard]] std::string environment_entry() const;
  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }

 private:
  PreloadLibrary() = default;

  std::filesystem::path file_;              // the real one
  std::filesystem::path path_;              // for LD_PRELOAD
  std::filesystem::path temporary_folder_;  // empty: none
};

// /proc/self/exe, resolved.
[[nodiscard]] std::filesystem::path own_executable();

}  // namespace heaptape::collector
