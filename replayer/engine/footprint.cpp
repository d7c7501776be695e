#include "replayer/engine/footprint.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace heaptape::replayer::engine {

namespace {

constexpr std::size_t text_bytes = std::size_t{256} * 1024;
constexpr std::size_t scratch_bytes = std::size_t{256} * 1024;

// The PAGEMAP_SCAN call of Linux 6.7; older headers do not have it.
struct ScanRegion {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t categories;
};
struct ScanRequest {
  std::uint64_t size_bytes;
  std::uint64_t flags;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t regions;
  std::uint64_t region_capacity;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t page_is_present = 1U << 3U;
constexpr std::uint64_t page_is_zero = 1U << 5U;  // the shared page of zeros: nobody's memory

std::uint64_t number(const char*& text, unsigned base) noexcept {
  std::uint64_t value = 0;
  for (;; ++text) {
    const char digit = *text;
    unsigned next = base;
    if (digit >= '0' && digit <= '9') next = static_cast<unsigned>(digit - '0');
    if (digit >= 'a' && digit <= 'f') next = static_cast<unsigned>(digit - 'a') + 10;
    if (next >= base) return value;
    value = value * base + next;
  }
}

bool starts_with(const char* text, const char* beginning) noexcept {
  return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

// The bytes of a line like "Rss:    128 kB", if it is that line.
bool field(const char* line, const char* name, std::uint64_t& bytes) noexcept {
  if (!starts_with(line, name)) return false;
  const char* at = line + std::strlen(name);
  while (*at == ' ') ++at;
  bytes = number(at, 10) * 1024;
  return true;
}

}  // namespace

struct FootprintReader::Area {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool counted = false;
  bool shared = false;
  bool committed = false;
};

bool FootprintReader::prepare(OwnMemory& memory) noexcept {
  text_ = static_cast<char*>(memory.make(text_bytes, Touching::now));
  scratch_ = static_cast<unsigned char*>(memory.make(scratch_bytes, Touching::now));
  smaps_ = ::open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  maps_ = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  pagemap_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (text_ == nullptr || scratch_ == nullptr || smaps_ < 0 || maps_ < 0) return false;
  ScanRequest probe{};
  probe.size_bytes = sizeof probe;
  probe.begin = reinterpret_cast<std::uintptr_t>(text_);
  probe.end = probe.begin + page_bytes;
  probe.regions = reinterpret_cast<std::uintptr_t>(scratch_);
  probe.region_capacity = 1;
  probe.category_mask = page_is_present;
  probe.return_mask = page_is_present;
  can_scan_ = pagemap_ >= 0 && ::ioctl(pagemap_, pagemap_scan, &probe) == 1;
  return true;
}

template <class Line>
void FootprintReader::for_each_line(int fd, Line&& line) noexcept {
  if (::lseek(fd, 0, SEEK_SET) != 0) return;
  std::size_t kept = 0;
  for (;;) {
    const ssize_t got = ::read(fd, text_ + kept, text_bytes - 1 - kept);
    if (got <= 0) return;
    const std::size_t filled = kept + static_cast<std::size_t>(got);
    text_[filled] = '\0';
    char* begin = text_;
    while (char* const newline = static_cast<char*>(
               std::memchr(begin, '\n', filled - static_cast<std::size_t>(begin - text_)))) {
      *newline = '\0';
      line(static_cast<const char*>(begin));
      begin = newline + 1;
    }
    kept = filled - static_cast<std::size_t>(begin - text_);
    std::memmove(text_, begin, kept);
  }
}

// "begin-end perms offset device inode   name". False: the line is not the head of an area.
bool FootprintReader::parse_area(const char* line, Area& area) const noexcept {
  const char first = *line;
  if (!((first >= '0' && first <= '9') || (first >= 'a' && first <= 'f'))) return false;
  area.begin = number(line, 16);
  ++line;
  area.end = number(line, 16);
  ++line;
  const bool readable = line[0] == 'r';
  const bool writable = line[1] == 'w';
  area.shared = line[3] == 's';
  for (int fields = 0; fields < 4; ++fields) {
    while (*line != ' ' && *line != '\0') ++line;
    while (*line == ' ') ++line;
  }
  while (*line == ' ') ++line;
  const char* const name = line;
  if (area.shared) {
    const bool memory = writable || starts_with(name, "/memfd:") || starts_with(name, "/dev/zero") ||
                        starts_with(name, "/dev/shm/") || starts_with(name, "/SYSV");
    area.counted = memory && !own_.owns(area.begin, area.end);
  } else {
    area.counted = *name == '\0' || starts_with(name, "[heap]") || starts_with(name, "[anon") ||
                   starts_with(name, "/dev/zero");
  }
  area.committed = area.counted && !area.shared && readable && writable;
  return true;
}

Footprint FootprintReader::exact() noexcept {
  Footprint sum{.method = FootprintMethod::smaps};
  Area area;
  for_each_line(smaps_, [&](const char* line) {
    if (parse_area(line, area)) {
      if (area.committed) sum.committed_bytes += area.end - area.begin;
      if (area.counted && !area.shared) sum.reserved_bytes += area.end - area.begin;
      return;
    }
    if (!area.counted) return;
    std::uint64_t bytes = 0;
    if (area.shared) {
      // Pss: a page that the candidate maps at two addresses is still one page.
      if (field(line, "Pss:", bytes)) sum.resident_bytes += bytes;
    } else if (field(line, "Rss:", bytes)) {
      sum.resident_bytes += bytes;
    } else if (field(line, "LazyFree:", bytes)) {
      sum.resident_bytes -= bytes;
      sum.lazy_free_bytes += bytes;
    }
  });
  return sum;
}

Footprint FootprintReader::cheap() noexcept {
  Footprint sum{.method = can_scan_ ? FootprintMethod::pagemap_scan : FootprintMethod::mincore};
  Area area;
  for_each_line(maps_, [&](const char* line) {
    if (!parse_area(line, area) || !area.counted) return;
    if (area.committed) sum.committed_bytes += area.end - area.begin;
    if (!area.shared) sum.reserved_bytes += area.end - area.begin;
    sum.resident_bytes += present_bytes(area.begin, area.end);
  });
  return sum;
}

std::uint64_t FootprintReader::present_bytes(std::uintptr_t begin, std::uintptr_t end) noexcept {
  return can_scan_ ? scan_bytes(begin, end) : core_bytes(begin, end);
}

std::uint64_t FootprintReader::scan_bytes(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const auto* const regions = reinterpret_cast<const ScanRegion*>(scratch_);
  std::uint64_t bytes = 0;
  ScanRequest request{};
  request.size_bytes = sizeof request;
  request.regions = reinterpret_cast<std::uintptr_t>(scratch_);
  request.region_capacity = scratch_bytes / sizeof(ScanRegion);
  request.category_inverted = page_is_zero;
  request.category_mask = page_is_present | page_is_zero;
  request.return_mask = page_is_present;
  while (begin < end) {
    request.begin = begin;
    request.end = end;
    request.walk_end = 0;
    const int found = ::ioctl(pagemap_, pagemap_scan, &request);
    if (found < 0) break;
    for (int i = 0; i < found; ++i) bytes += regions[i].end - regions[i].begin;
    // Kernels are known that tell a walk end before the end of the last region: those pages would be
    // counted again.
    std::uintptr_t reached = request.walk_end;
    if (found > 0 && regions[found - 1].end > reached) reached = regions[found - 1].end;
    if (reached <= begin) break;
    begin = reached;
  }
  return bytes;
}

std::uint64_t FootprintReader::core_bytes(std::uintptr_t begin, std::uintptr_t end) noexcept {
  std::uint64_t pages = 0;
  while (begin < end) {
    const std::size_t part =
        end - begin < scratch_bytes * page_bytes ? end - begin : scratch_bytes * page_bytes;
    if (::mincore(reinterpret_cast<void*>(begin), part, scratch_) == 0) {
      for (std::size_t i = 0; i < part / page_bytes; ++i) pages += scratch_[i] & 1U;
    }
    begin += part;
  }
  return pages * page_bytes;
}

}  // namespace heaptape::replayer::engine
