#include "cli/suggest.h"

#include <algorithm>

namespace heaptape::cli {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);  // the row two above: for swaps
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t column = 0; column <= b.size(); ++column) {
    above[column] = column;
  }
  for (std::size_t line = 1; line <= a.size(); ++line) {
    row[0] = line;
    for (std::size_t column = 1; column <= b.size(); ++column) {
      const bool same = a[line - 1] == b[column - 1];
      row[column] = std::min({above[column] + 1, row[column - 1] + 1, above[column - 1] + (same ? 0U : 1U)});
      if (line > 1 && column > 1 && a[line - 1] == b[column - 2] && a[line - 2] == b[column - 1]) {
        row[column] = std::min(row[column], before[column - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const bool begun = word.size() >= 2 && candidate.starts_with(word);
    const std::size_t distance = begun ? 1 : edit_distance(word, candidate);
    // Half of a short word replaced is another word.
    if (distance < best_distance && (begun || distance * 2 <= word.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace heaptape::cli
