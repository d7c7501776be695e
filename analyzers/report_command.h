// `heaptape report TAPE -o FILE.html`: everything about a tape and its replay as one page.
#pragma once

#include "format/base/command.h"

namespace heaptape::analyzers {

void add_report_command(CLI::App& app, format::CommandContext& context);

}  // namespace heaptape::analyzers
