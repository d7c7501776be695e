#include "replayer/engine/settle.h"

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

namespace heaptape::replayer::engine {

namespace {

constexpr const char* huge_page_setting = "/sys/kernel/mm/transparent_hugepage/enabled";

bool system_setting_is(const char* marked) noexcept {
  char text[128] = {};
  const int fd = ::open(huge_page_setting, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return got > 0 && std::strstr(text, marked) != nullptr;
}

bool set_huge_pages(HugePages wanted, Text& message) noexcept {
  if (wanted == HugePages::never) {
    // Where the kernel has no huge pages the call fails, and there are none.
    ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    return true;
  }
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  const bool always = wanted == HugePages::always;
  if (system_setting_is(always ? "[always]" : "[madvise]")) return true;
  message << "huge pages: the system is not set to " << (always ? "always" : "madvise")
          << "; write that word into " << huge_page_setting << " first";
  return false;
}

}  // namespace

bool settle(const EngineRequest& request, char** arguments, bool settled, bool& randomised,
            Text& message) noexcept {
  constexpr unsigned long ask = 0xFFFFFFFFUL;
  const int persona = ::personality(ask);
  randomised = persona < 0 || (persona & ADDR_NO_RANDOMIZE) == 0;
  if (settled) return true;
  if (!set_huge_pages(request.huge_pages, message)) return false;
  if (randomised && persona >= 0) {
    static_cast<void>(::personality(static_cast<unsigned long>(persona) | ADDR_NO_RANDOMIZE));
  }
  // --plan-fd P --result-fd R: five arguments, then ours.
  constexpr int kept = 5;
  char flag[] = "--settled";
  char* again[kept + 2] = {};
  for (int i = 0; i < kept; ++i) again[i] = arguments[i];
  again[kept] = flag;
  ::execv("/proc/self/exe", again);
  return true;  // no /proc: the process goes on as it is
}

}  // namespace heaptape::replayer::engine
