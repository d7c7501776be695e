// `heaptape print TAPE`: the events, one a line, in the one merged order.
#pragma once

#include "format/base/command.h"

namespace heaptape::analyzers {

void add_print_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::analyzers
