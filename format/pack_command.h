// `heaptape pack`: the verb around pack_tape.
#pragma once

#include "format/base/command.h"

namespace heaptape::format {

void add_pack_command(CLI::App& app, CommandContext& context);

}  // namespace heaptape::format
