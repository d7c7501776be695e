// `stats` for people and for programs. docs/stats.md defines every number.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/render/json.h"
#include "analyzers/stats.h"

namespace heaptape::analyzers {

struct StatsTextOptions {
  std::size_t top = 10;  // rows of the tables that can be long
};

[[nodiscard]] std::string stats_text(std::string_view tape, const Stats& stats, const format::TapeInfo& info,
                                     const StatsTextOptions& options);
[[nodiscard]] Json stats_json(std::string_view tape, const Stats& stats, const format::TapeInfo& info);

// "worker-1", else "thread 3".
[[nodiscard]] std::string thread_label(const format::TapeInfo& info, format::ThreadIndex thread);

}  // namespace heaptape::analyzers
