// A tape as text, one fact a line: what golden tapes are compared by. spec_reader.py prints the same.
#pragma once

#include <string>

#include "format/reader.h"

namespace heaptape::format {

[[nodiscard]] std::string tape_text(const TapeReader& reader);

}  // namespace heaptape::format
