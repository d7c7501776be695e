// `heaptape replay --list`: which candidates there are here, and how their numbers are obtained.
#pragma once

#include <string>
#include <vector>

#include "format/base/error.h"
#include "replayer/measure/engine_process.h"

namespace heaptape::replayer {

struct ListedCandidate {
  std::string name;
  std::string library;  // empty: none needed
  std::string version;  // as it tells itself; empty: it does not
  std::string package;  // to install; empty: installed or built in
  std::string how;      // how it is brought in and what can be asked of it
  std::string failure;  // it is there, but does not run
};

// Runs each installed candidate once on a plan of two calls: what is listed as running has run.
[[nodiscard]] format::Result<std::vector<ListedCandidate>> list_candidates(const EngineSettings& settings);
[[nodiscard]] std::string list_text(const std::vector<ListedCandidate>& list);
[[nodiscard]] std::string list_json(const std::vector<ListedCandidate>& list);

}  // namespace heaptape::replayer
