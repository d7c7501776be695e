// `heaptape info TAPE`: what ran, where, when, and whether the tape is whole. Reads no events.
#pragma once

#include "format/base/command.h"

namespace heaptape::analyzers {

void add_info_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::analyzers
