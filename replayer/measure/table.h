// A replay's result as text for people: what was run, a table of times, one of space, verdicts.
#pragma once

#include <string>

#include "replayer/measure/result.h"

namespace heaptape::replayer {

[[nodiscard]] std::string replay_text(const ReplayResult& result);

// Rows of cells as aligned columns: the first to the left, the others to the right; no trailing blanks.
[[nodiscard]] std::string align_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace heaptape::replayer
