// The verdict of `check` for people and for programs.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/check.h"
#include "analyzers/render/json.h"
#include "analyzers/render/style.h"

namespace heaptape::analyzers {

[[nodiscard]] std::string check_text(std::string_view tape, const Verdict& verdict,
                                     const format::MergeReport& merged, const format::TapeInfo& info,
                                     const Style& style);
[[nodiscard]] Json check_json(std::string_view tape, const Verdict& verdict,
                              const format::MergeReport& merged, const format::TapeInfo& info);

}  // namespace heaptape::analyzers
