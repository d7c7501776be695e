// A candidate's version in few words: "2.36", "5.3.0", "gperftools 2.10".
#pragma once

#include <string>
#include <string_view>

#include "replayer/measure/candidate.h"

namespace heaptape::replayer {

// `told`: "NAME VERSION" as the engine asked it of the allocator. One that tells nothing of itself has
// the version that its file's name tells; neither: empty.
[[nodiscard]] std::string version_of(const Candidate& candidate, std::string_view told);

}  // namespace heaptape::replayer
