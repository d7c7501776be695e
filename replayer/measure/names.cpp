#include "replayer/measure/names.h"

namespace heaptape::replayer {

std::string_view name_of(Order order) {
  switch (order) {
    case Order::serial:
      return "serial";
    case Order::total:
      return "total";
    case Order::deps:
      break;
  }
  return "deps";
}

std::string_view name_of(TouchMode touch) {
  switch (touch) {
    case TouchMode::none:
      return "none";
    case TouchMode::first:
      return "first";
    case TouchMode::pages:
      return "pages";
    case TouchMode::all:
      break;
  }
  return "all";
}

std::string_view name_of(HugePages huge_pages) {
  switch (huge_pages) {
    case HugePages::never:
      return "never";
    case HugePages::madvise:
      return "madvise";
    case HugePages::always:
      break;
  }
  return "always";
}

std::string_view name_of(FootprintMethod method) {
  switch (method) {
    case FootprintMethod::smaps:
      return "smaps";
    case FootprintMethod::pagemap_scan:
      return "pagemap_scan";
    case FootprintMethod::mincore:
      return "mincore";
    case FootprintMethod::none:
      break;
  }
  return "none";
}

}  // namespace heaptape::replayer
