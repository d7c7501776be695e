// A replay's result as text for people: what was run, a table of times, one of space, verdicts.
#pragma once

#include <string>
#include <vector>

#include "replayer/measure/result.h"

namespace heaptape::replayer {

[[nodiscard]] std::string replay_text(const ReplayResult& result);

enum class Align { numbers, text };  // all columns but the first: to the right, or all to the left

// Rows of cells as aligned columns, without trailing blanks.
[[nodiscard]] std::string align_columns(const std::vector<std::vector<std::string>>& rows,
                                        Align align = Align::numbers);

}  // namespace heaptape::replayer
