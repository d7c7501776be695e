// Text files that are built into the program, for a page that needs no other file.
#pragma once

#include <string_view>

namespace heaptape::analyzers {

extern const std::string_view report_css;
extern const std::string_view report_js;
extern const std::string_view uplot_css;
extern const std::string_view uplot_js;

}  // namespace heaptape::analyzers
