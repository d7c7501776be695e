// The part of a tape's header that tells about this machine.
#pragma once

#include "format/tape.h"

namespace heaptape::collector {

// Version, kernel, processor, page size; everything else at its default.
[[nodiscard]] format::TapeHeader host_header();

}  // namespace heaptape::collector
