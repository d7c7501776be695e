#include "analyzers/command_support.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "format/base/progress.h"

namespace heaptape::analyzers {

using format::ExitCode;
using format::Failure;
using format::Result;

void add_tape_option(CLI::App& verb, std::string& tape) {
  verb.add_option("TAPE", tape, "The tape to read, recorded or packed")->required();
}

void add_json_flag(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "Print JSON for programs instead of text for people");
}

Result<void> StandardOutput::write(std::string_view text) {
  constexpr std::size_t enough = 1U << 16U;
  if (gone_) {
    return {};
  }
  buffer_ += text;
  return buffer_.size() < enough ? Result<void>{} : flush();
}

Result<void> StandardOutput::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !gone_) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      gone_ = true;
    } else if (errno != EINTR) {
      const int error = errno;
      buffer_.clear();
      return format::system_failure("writing to standard output", error);
    }
  }
  buffer_.clear();
  return {};
}

Result<ExitCode> print(std::string_view text, ExitCode code) {
  StandardOutput out;
  HEAPTAPE_TRY(out.write(text));
  HEAPTAPE_TRY(out.flush());
  return code;
}

Result<void> analyse(const format::TapeReader& reader, std::string_view label, bool quiet,
                     std::initializer_list<Analysis*> analyses) {
  auto cursor = reader.events();
  if (!cursor) {
    return Failure(std::move(cursor).error());
  }
  format::Progress progress(!quiet, std::string(label));
  return run(**cursor, analyses, [&](double share) { progress.update(share); });
}

}  // namespace heaptape::analyzers
