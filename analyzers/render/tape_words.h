// What a tape is, in words and as JSON: the heads of all reports. The text of `info`.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/render/json.h"
#include "format/reader.h"

namespace heaptape::analyzers {

// "redis-server": the name it was started by, else that of its file; "unknown program".
[[nodiscard]] std::string program_name(const format::TapeHeader& header);
// "PROGRAM ARGS...", cut to about 100 characters.
[[nodiscard]] std::string command_line(const format::TapeHeader& header, std::size_t most = 100);
// "glibc (libc.so.6)", from the path of the library; "unknown".
[[nodiscard]] std::string allocator_name(const format::TapeHeader& header);
// "exited with status 0", "killed by signal 9 (Killed)", ...
[[nodiscard]] std::string end_words(const format::TapeFooter& footer);
// "2026-03-01 12:00:00 UTC"; empty for 0.
[[nodiscard]] std::string utc(std::uint64_t unix_ns);
[[nodiscard]] std::string_view form_name(format::TapeForm form) noexcept;
[[nodiscard]] std::string_view clock_name(format::ClockSource clock) noexcept;
[[nodiscard]] std::string_view stacks_name(format::StackMode stacks) noexcept;
[[nodiscard]] std::string_view end_key(format::EndReason reason) noexcept;
// Of the whole recording: from the footer, or as far as samples tell where the footer is missing.
[[nodiscard]] std::int64_t duration_ns(const format::TapeInfo& info) noexcept;

[[nodiscard]] std::string info_text(std::string_view tape, const format::TapeInfo& info);
[[nodiscard]] Json info_json(std::string_view tape, const format::TapeInfo& info);
// The parts that other documents carry too.
[[nodiscard]] Json damage_json(const format::Damage& damage);
[[nodiscard]] Json recorder_json(const format::RecorderStats& recorder);

}  // namespace heaptape::analyzers
