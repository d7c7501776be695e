#include "replayer/measure/tunables.h"

#include <link.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "format/base/units.h"

namespace heaptape::replayer {

using format::ExitCode;
using format::failure;
using format::Failure;
using format::Result;

namespace {

struct Setting {
  std::string key;
  std::string value;
};

Result<std::vector<Setting>> split(const std::string& label, std::string_view text) {
  std::vector<Setting> settings;
  while (true) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return failure(ExitCode::usage, "-a {}: \"{}\" is no setting; write KEY=VALUE,KEY=VALUE", label, item);
    }
    settings.push_back({std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))});
    if (end == text.size()) {
      return settings;
    }
    text.remove_prefix(end + 1);
  }
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// glibc keeps the names of its tunables in the dynamic linker.
std::filesystem::path dynamic_linker() {
  std::filesystem::path path;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        const std::filesystem::path name(info->dlpi_name == nullptr ? "" : info->dlpi_name);
        if (name.filename().string().starts_with("ld-")) {
          *static_cast<std::filesystem::path*>(context) = name;
        }
        return 0;
      },
      &path);
  return path;
}

// Does the library hold this name as (the end of) a C string?
bool knows(const std::string& content, std::string_view name) {
  return content.find(std::string(name) + '\0') != std::string::npos;
}

Failure unknown(const Candidate& candidate, std::string_view key) {
  return failure(ExitCode::usage, "-a {}: {} has no setting \"{}\" ({} does not hold that name)",
                 candidate.label, candidate.name, key,
                 candidate.library.empty() ? "it" : candidate.library.native());
}

Result<void> apply_glibc(Candidate& candidate, const std::vector<Setting>& settings) {
  const std::string linker = content_of(dynamic_linker());
  std::string value;
  for (const Setting& s : settings) {
    const std::string name = s.key.find('.') == std::string::npos ? "glibc.malloc." + s.key : s.key;
    if (!linker.empty() && !knows(linker, name)) {
      return unknown(candidate, s.key);
    }
    value += fmt::format("{}{}={}", value.empty() ? "" : ":", name, s.value);
  }
  candidate.environment.push_back("GLIBC_TUNABLES=" + value);
  return {};
}

// One variable that holds them all: MALLOC_CONF=a:1,b:2 or SCUDO_OPTIONS=a=1:b=2.
Result<void> apply_list(Candidate& candidate, const std::vector<Setting>& settings, std::string_view variable,
                        char between, char after_key) {
  const std::string library = content_of(candidate.library);
  std::string value;
  for (const Setting& s : settings) {
    if (!knows(library, s.key)) {
      return unknown(candidate, s.key);
    }
    value += value.empty() ? "" : std::string(1, between);
    value += s.key + after_key + s.value;
  }
  candidate.environment.push_back(fmt::format("{}={}", variable, value));
  return {};
}

// MIMALLOC_PURGE_DELAY=0 and the like.
Result<void> apply_upper_case(Candidate& candidate, const std::vector<Setting>& settings,
                              std::string_view prefix) {
  std::string library = content_of(candidate.library);
  if (prefix == "TBB_MALLOC_") {  // the proxy only forwards; the names are in the library behind it
    std::string sibling = candidate.library.filename().native();
    if (const std::size_t proxy = sibling.find("_proxy"); proxy != std::string::npos) {
      library += content_of(candidate.library.parent_path() / sibling.erase(proxy, 6));
    }
  }
  for (Setting s : settings) {
    // mimalloc called the same thing decommit_delay before 2.1.
    if (prefix == "MIMALLOC_" && s.key == "purge_delay" && !knows(library, s.key)) {
      s.key = "decommit_delay";
    }
    const std::string variable = std::string(prefix) + upper_case(s.key);
    if (!knows(library, s.key) && !knows(library, variable)) {
      return unknown(candidate, s.key);
    }
    candidate.environment.push_back(variable + "=" + s.value);
  }
  return {};
}

// Built-in heaps: `size` goes to the engine as a number, the rest as it stands.
Result<void> apply_request(Candidate& candidate, const std::vector<Setting>& settings) {
  for (const Setting& s : settings) {
    if (s.key == "size") {
      const auto bytes = format::parse_size_bytes(s.value);
      if (!bytes) {
        return Failure(format::Error(bytes.error()).within("-a " + candidate.label));
      }
      candidate.arena_bytes = *bytes;
      continue;
    }
    candidate.tunables += fmt::format("{}{}={}", candidate.tunables.empty() ? "" : ",", s.key, s.value);
  }
  return {};
}

}  // namespace

Result<void> apply_tunables(Candidate& candidate, const KnownAllocator* known, std::string_view tunables) {
  const auto settings = split(candidate.label, tunables);
  if (!settings) {
    return Failure(settings.error());
  }
  const TunableForm form = known == nullptr ? TunableForm::variables : known->tunables;
  switch (form) {
    case TunableForm::none:
      return failure(ExitCode::usage, "-a {}: {} has no settings", candidate.label, candidate.name);
    case TunableForm::request:
      return apply_request(candidate, *settings);
    case TunableForm::glibc:
      return apply_glibc(candidate, *settings);
    case TunableForm::malloc_conf:
      return apply_list(candidate, *settings, "MALLOC_CONF", ',', ':');
    case TunableForm::scudo_options:
      return apply_list(candidate, *settings, "SCUDO_OPTIONS", ':', '=');
    case TunableForm::upper_case_variables:
      return apply_upper_case(candidate, *settings, known->tunable_prefix);
    case TunableForm::variables:
      break;
  }
  for (const Setting& s : *settings) {
    candidate.environment.push_back(s.key + "=" + s.value);
  }
  return {};
}

}  // namespace heaptape::replayer
