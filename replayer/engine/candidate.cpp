#include "replayer/engine/candidate.h"

#include <cstring>

namespace heaptape::replayer::engine {

bool load_candidate(const CandidateSetup& setup, Candidate& candidate) noexcept {
  const EngineRequest& request = setup.request;
  if (request.candidate != CandidateKind::builtin && request.tunables[0] != '\0') {
    setup.message << request.name
                  << ": tunables are for built-in heaps; give others theirs by the environment";
    return false;
  }
  switch (request.candidate) {
    case CandidateKind::builtin:
      if (std::strcmp(request.name, "null") == 0) return load_null(setup, candidate);
      if (std::strcmp(request.name, "arena") == 0) return load_arena(setup, candidate);
      setup.message << request.name << ": no such built-in heap; there are null and arena";
      return false;
    case CandidateKind::process:
      return load_process(setup, candidate);
    case CandidateKind::library:
      return load_library(setup, candidate);
  }
  setup.message << "unknown kind of candidate";
  return false;
}

}  // namespace heaptape::replayer::engine
