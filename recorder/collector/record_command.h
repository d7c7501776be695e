// `heaptape record`.
#pragma once

#include "format/base/command.h"

namespace heaptape::collector {

void add_record_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::collector
