// JSON as all verbs print it: keys in the order written, invalid UTF-8 (program names are bytes)
// replaced, a `schema` field first.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace heaptape::analyzers {

using Json = nlohmann::ordered_json;

// An object that begins with {"schema": "heaptape.NAME/VERSION"}.
[[nodiscard]] Json document(std::string_view name, int version);
// Indented, ended by a newline. Never throws for text that is not UTF-8.
[[nodiscard]] std::string dump(const Json& json);
// On one line, no newline.
[[nodiscard]] std::string dump_line(const Json& json);

}  // namespace heaptape::analyzers
