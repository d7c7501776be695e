// `check`: can the tape be trusted?
//
// Unsound: blocks or events are missing, or the order of events contradicts itself. What merely
// happened to the program (it was killed, it was recorded from the middle) is a note.
#pragma once

#include <string>
#include <vector>

#include "format/reader.h"

namespace heaptape::analyzers {

struct Verdict {
  bool sound = true;
  std::vector<std::string> faults;  // why it is unsound, one sentence each
  std::vector<std::string> notes;   // what else a reader should know
};

[[nodiscard]] Verdict judge(const format::MergeReport& merged, const format::TapeInfo& info);

}  // namespace heaptape::analyzers
