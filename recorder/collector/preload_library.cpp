#include "recorder/collector/preload_library.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

namespace heaptape::collector {

namespace fs = std::filesystem;

namespace {

constexpr const char* library_name = "libheaptape_preload.so";

bool splits_in_ld_preload(const fs::path& path) {
  return path.native().find_first_of(": \t\n") != std::string::npos;
}

}  // namespace

fs::path own_executable() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

format::Result<PreloadLibrary> PreloadLibrary::find(const fs::path& self) {
  std::vector<fs::path> candidates;
  if (const char* named = std::getenv("HEAPTAPE_PRELOAD"); named != nullptr && *named != '\0') {
    candidates.emplace_back(named);
  } else {
    const fs::path base = self.parent_path().parent_path();
    candidates = {base / "lib" / "heaptape" / library_name, base / "lib" / library_name};
  }
  PreloadLibrary library;
  std::error_code error;
  for (const fs::path& candidate : candidates) {
    if (fs::is_regular_file(candidate, error)) {
      library.file_ = fs::canonical(candidate, error);
      break;
    }
  }
  if (library.file_.empty()) {
    return format::failure(format::ExitCode::system,
                           "the recording library is missing: no {}; build or install it, or name it in "
                           "HEAPTAPE_PRELOAD",
                           candidates.back().native());
  }
  library.path_ = library.file_;
  if (splits_in_ld_preload(library.file_)) {
    fs::path folder = fs::temp_directory_path(error);
    if (error || splits_in_ld_preload(folder)) {
      folder = "/tmp";
    }
    std::string pattern = (folder / "heaptape-XXXXXX").native();
    if (::mkdtemp(pattern.data()) == nullptr) {
      return format::system_failure(
          fmt::format("{} holds a blank or colon, and no link to it can be made in {}",
                      library.file_.native(), folder.native()),
          errno);
    }
    library.temporary_folder_ = pattern;
    library.path_ = library.temporary_folder_ / library_name;
    // Open to all: a program that changes its user must still be able to load it.
    ::chmod(library.temporary_folder_.c_str(), 0755);
    fs::create_symlink(library.file_, library.path_, error);
    if (error) {
      return format::system_failure(library.path_.native(), error.value());
    }
  }
  return library;
}

PreloadLibrary::PreloadLibrary(PreloadLibrary&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::move(other.path_)),
      temporary_folder_(std::exchange(other.temporary_folder_, {})) {}

PreloadLibrary::~PreloadLibrary() {
  if (!temporary_folder_.empty()) {
    std::error_code ignored;
    fs::remove(path_, ignored);
    fs::remove(temporary_folder_, ignored);
  }
}

std::string PreloadLibrary::environment_entry() const {
  std::string entry = "LD_PRELOAD=" + path_.native();
  if (const char* old = std::getenv("LD_PRELOAD"); old != nullptr && *old != '\0') {
    entry += ':';
    entry += old;
  }
  return entry;
}

}  // namespace heaptape::collector
