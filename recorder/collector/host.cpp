#include "recorder/collector/host.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace heaptape::collector {

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

}  // namespace

format::TapeHeader host_header() {
  format::TapeHeader header;
  utsname name{};
  if (::uname(&name) == 0) {
    header.host_kernel = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  }
  header.heaptape_version = HEAPTAPE_VERSION;
  static const std::string model = cpu_model();  // the file is long where processors are many
  header.cpu_model = model;
  header.cpus = static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  header.page_size_bytes = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
  return header;
}

}  // namespace heaptape::collector
