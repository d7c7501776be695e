// Settings of an allocator, translated to what it reads.
//
// A setting that the library does not know would be ignored without a word and the result would lie:
// names are therefore looked up in the library's file, and an unknown one is a usage error.
#pragma once

#include <string_view>

#include "format/base/error.h"
#include "replayer/measure/candidate.h"

namespace heaptape::replayer {

// Adds "key=value,key=value" to the candidate. `known` may be null: an allocator of the user's own.
[[nodiscard]] format::Result<void> apply_tunables(Candidate& candidate, const KnownAllocator* known,
                                                  std::string_view tunables);

}  // namespace heaptape::replayer
