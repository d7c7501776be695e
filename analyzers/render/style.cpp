#include "analyzers/render/style.h"

#include <unistd.h>

#include <cstdlib>

namespace heaptape::analyzers {

Style Style::for_stdout() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return Style(isatty(STDOUT_FILENO) == 1 && !refused && !dumb);
}

}  // namespace heaptape::analyzers
