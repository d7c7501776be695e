// What the verbs that read tapes have in common: options, output, the pass over a tape.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "analyzers/analysis.h"
#include "format/base/command.h"
#include "format/reader.h"

namespace heaptape::analyzers {

// The positional TAPE. Not checked by CLI11: a bad tape is exit code 3, not wrong usage.
void add_tape_option(CLI::App& verb, std::string& tape);
void add_json_flag(CLI::App& verb, bool& json);

// Standard output, buffered, with errors noticed. A reader that has gone (`| head`) is no error: then
// `gone` turns true and the work may stop.
class StandardOutput {
 public:
  StandardOutput() = default;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  [[nodiscard]] format::Result<void> write(std::string_view text);
  [[nodiscard]] format::Result<void> flush();
  [[nodiscard]] bool gone() const noexcept { return gone_; }

 private:
  std::string buffer_;
  bool gone_ = false;
};

// Writes all of `text` to standard output and yields `code`.
[[nodiscard]] format::Result<format::ExitCode> print(std::string_view text, format::ExitCode code);

// One pass of the analyses over the whole tape, with progress on a terminal unless `quiet`.
[[nodiscard]] format::Result<void> analyse(const format::TapeReader& reader, std::string_view label,
                                           bool quiet, std::initializer_list<Analysis*> analyses);

}  // namespace heaptape::analyzers
