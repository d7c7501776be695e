// The two cursors over a tape's blocks: through the merge, and straight from the packed order.
//
// Both read block by block in file order and hold no more than one block besides what the merge
// (recorded) or the live objects (packed) need. The contents must outlive them.
#pragma once

#include <memory>

#include "format/cursor.h"
#include "format/input.h"
#include "format/scan.h"

namespace heaptape::format {

[[nodiscard]] std::unique_ptr<EventCursor> make_recorded_cursor(const InputFile& file,
                                                                const TapeContents& contents);
[[nodiscard]] std::unique_ptr<EventCursor> make_packed_cursor(const InputFile& file,
                                                              const TapeContents& contents);

}  // namespace heaptape::format
