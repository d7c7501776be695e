// The verb that somebody who mistyped one probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heaptape::cli {

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);
// The nearest of `known`, or one that begins with `word`; empty where none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace heaptape::cli
