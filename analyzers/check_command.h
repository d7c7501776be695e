// `heaptape check TAPE`: reads everything and says whether the tape can be trusted.
#pragma once

#include "format/base/command.h"

namespace heaptape::analyzers {

void add_check_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::analyzers
