// What `heaptape record` was asked to do; plain data, filled by the command line or by a test.
#pragma once

#include <string>
#include <vector>

#include "format/tape.h"

namespace heaptape::collector {

enum class Overflow { block, drop };  // what a thread does when no ring has room

struct RecordOptions {
  std::vector<std::string> command;  // program and its arguments
  std::string output = "heaptape.%e.%p.tape";
  std::string summary_path;  // JSON; empty: none
  format::StackMode stacks = format::StackMode::none;
  Overflow overflow = Overflow::block;
  bool follow = true;  // record the processes that the program starts
  bool quiet = false;
};

}  // namespace heaptape::collector
