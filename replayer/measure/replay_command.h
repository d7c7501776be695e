// `heaptape replay TAPE`: the tape against allocators, with a verdict.
#pragma once

#include "format/base/command.h"

namespace heaptape::replayer {

void add_replay_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::replayer
