// One whole replay: plans, space runs, interleaved time runs, consistency checks, verdicts.
//
// Space and time are measured in separate runs. Space: once per candidate in `serial` or `total`,
// whose every moment is the same for all; where a cheap reading found the resident peak, the run is
// repeated with an exact reading there. Time: a warm-up round and then `runs` rounds, each of `null`
// and all candidates in turn; net = a candidate's time less that of `null` in the same round.
// A candidate that fails is reported and left out; the others go on. Errors: bad_tape, system; or
// `null` itself failed, without which there is nothing to compare with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/error.h"
#include "format/cursor.h"
#include "replayer/measure/candidate.h"
#include "replayer/measure/engine_process.h"
#include "replayer/measure/result.h"

namespace heaptape::replayer {

// Opens the tape's events from the beginning, each time it is called.
using OpenEvents = std::function<format::Result<std::unique_ptr<format::EventCursor>>()>;
// What is being done, as step `step` of `steps`.
using Progress = std::function<void(std::string_view what, std::size_t step, std::size_t steps)>;

struct ReplaySettings {
  Order order = Order::serial;
  std::uint32_t runs = 5;
  std::string baseline;  // a label; empty: glibc, else the first candidate
  EngineSettings engine;
};

[[nodiscard]] format::Result<ReplayResult> replay(const OpenEvents& open,
                                                  const std::vector<Candidate>& candidates,
                                                  const ReplaySettings& settings, const Progress& progress);

}  // namespace heaptape::replayer
