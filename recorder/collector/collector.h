// A whole recording: starts the program, records it and what it starts, until all have ended.
//
// Guarantees: the program keeps its terminal and its exit status; what goes wrong with the recording
// is told and never becomes the program's trouble. One thread, one loop: a pass over all rings every
// millisecond, sooner while they fill up, every four while the programs are idle.
//
// Signals. From the terminal (Ctrl-C, Ctrl-\): the program's business, it gets them too. Sent to
// heaptape alone (TERM, HUP, INT): passed on to the program. Once the program has ended and others
// are still recorded, or at the second time: the recording ends, and what runs runs on.
#pragma once

#include "format/base/error.h"
#include "recorder/collector/options.h"
#include "recorder/collector/summary.h"

namespace heaptape::collector {

// Errors: usage (no such program, no such folder for the tape), system; then nothing was started.
[[nodiscard]] format::Result<RecordingSummary> record(const RecordOptions& options);

}  // namespace heaptape::collector
