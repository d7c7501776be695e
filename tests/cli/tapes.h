// Small tapes for the tests of verbs, written with the real writer. The same bytes every time.
#pragma once

#include <cstdint>
#include <filesystem>

namespace heaptape::cli::testing {

// Thread 0 ("maker") allocates `blocks` blocks of 100 bytes, thread 1 frees all but the last, and
// then NULL: 2 * blocks calls. A sound tape, unless `forget_first_free`: then the first block's
// address is handed out again while it is live, for one contradiction more call.
void write_tape(const std::filesystem::path& path, std::uint64_t blocks, bool forget_first_free = false);

// The first half of the bytes of `whole`.
void cut_tape(const std::filesystem::path& whole, const std::filesystem::path& cut);

}  // namespace heaptape::cli::testing
