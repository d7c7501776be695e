// `heaptape stats TAPE`: the tape in numbers.
#pragma once

#include "format/base/command.h"

namespace heaptape::analyzers {

void add_stats_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::analyzers
