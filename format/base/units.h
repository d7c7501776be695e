// Sizes and times as people write and read them: "64K", "32MiB", "90s", "1.5 GiB".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/error.h"

namespace heaptape::format {

// "4096", "64K", "64KiB", "1.5M", "2GB": powers of 1024, case ignored. Errors: usage.
[[nodiscard]] Result<std::uint64_t> parse_size_bytes(std::string_view text);
// "90s", "5m", "1.5h", "250ms", "10us", "7ns"; a bare number means seconds. Errors: usage.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

[[nodiscard]] std::string format_size(std::uint64_t bytes);                // "1.50 GiB", "17 B"
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds time);  // "1.24 s", "13.1 ms"
[[nodiscard]] std::string format_count(std::uint64_t n);                   // "12,345,678"

}  // namespace heaptape::format
