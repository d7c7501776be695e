// Brings the process into the state that results are comparable in.
#pragma once

#include "replayer/engine/protocol.h"
#include "replayer/engine/text.h"

namespace heaptape::replayer::engine {

// Address randomisation off, huge pages as asked. Both take effect for a fresh program only, so this
// may start the engine anew (with `--settled`), and then does not return. `settled`: that has been
// done. False: refused, the message says what to change. `randomised` is set either way.
[[nodiscard]] bool settle(const EngineRequest& request, char** arguments, bool settled, bool& randomised,
                          Text& message) noexcept;

}  // namespace heaptape::replayer::engine
