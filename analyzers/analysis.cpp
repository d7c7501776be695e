#include "analyzers/analysis.h"

#include <algorithm>

namespace heaptape::analyzers {

using format::Event;
using format::EventCursor;
using format::Failure;
using format::Result;

Result<void> run(EventCursor& cursor, std::span<Analysis* const> analyses, const ProgressFunction& progress) {
  constexpr std::size_t piece = 1024;  // times sizeof(Event): fits the second-level cache
  while (true) {
    const auto next = cursor.next();
    if (!next) {
      return Failure(next.error());
    }
    if (next->empty()) {
      break;
    }
    for (std::span<const Event> rest = *next; !rest.empty();) {
      const auto part = rest.first(std::min(piece, rest.size()));
      for (Analysis* analysis : analyses) {
        analysis->consume(part);
      }
      rest = rest.subspan(part.size());
    }
    if (progress) {
      progress(cursor.progress());
    }
  }
  for (Analysis* analysis : analyses) {
    analysis->finish(cursor.report());
  }
  return {};
}

Result<void> run(EventCursor& cursor, std::initializer_list<Analysis*> analyses,
                 const ProgressFunction& progress) {
  return run(cursor, std::span<Analysis* const>(analyses.begin(), analyses.size()), progress);
}

}  // namespace heaptape::analyzers
