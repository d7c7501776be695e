// Everything about a tape, and about its replays, as one self-contained HTML page.
//
// The page needs no network and no other file, and says so to the browser (Content-Security-Policy).
// Words and tables work without JavaScript; charts need it. Strings from tape and result are
// untrusted and escaped.
#pragma once

#include <string>
#include <vector>

#include "analyzers/render/json.h"
#include "analyzers/stats.h"
#include "format/reader.h"
#include "replayer/measure/result.h"

namespace heaptape::analyzers {

struct ReportInput {
  std::string tape;  // as the user named it
  const format::TapeInfo& info;
  Stats stats;
  const replayer::ReplayResult* replay = nullptr;
};

[[nodiscard]] std::string report_page(const ReportInput& input);

// Parts of the page, in order.
[[nodiscard]] std::string overview_section(const ReportInput& input);
[[nodiscard]] std::string replay_section(const ReportInput& input);  // empty without a replay
[[nodiscard]] std::string memory_section(const ReportInput& input);
[[nodiscard]] std::string sizes_section(const ReportInput& input);
[[nodiscard]] std::string lifetimes_section(const ReportInput& input);
[[nodiscard]] std::string threads_section(const ReportInput& input);
[[nodiscard]] std::string recording_section(const ReportInput& input);
// What the charts draw.
[[nodiscard]] Json chart_data(const ReportInput& input);
// In words: what stands out in the replay, beyond its own verdicts.
[[nodiscard]] std::vector<std::string> replay_sentences(const replayer::ReplayResult& replay);

}  // namespace heaptape::analyzers
