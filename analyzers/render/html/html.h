// Building blocks of the HTML report. Whatever came from a tape or a file goes through `escaped`.
//
// Text for people only; the page is a fragment of strings put together, never parsed again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/render/json.h"

namespace heaptape::analyzers {

// For element content and quoted attributes; control characters vanish.
[[nodiscard]] std::string escaped(std::string_view text);
// JSON that is safe inside <script type="application/json">.
[[nodiscard]] std::string script_json(const Json& json);

// "1.23 MiB" with the exact number of bytes as a tooltip.
[[nodiscard]] std::string html_size(std::uint64_t bytes);
[[nodiscard]] std::string html_count(std::uint64_t n);
[[nodiscard]] std::string html_time(std::int64_t ns);
// A bar of `share` (0 to 1) of its cell; decoration, hidden from screen readers.
[[nodiscard]] std::string html_bar(double share);

// A defined term: `text` that links to its definition at the end of the page and shows it as a
// tooltip. `id` must be in glossary(); the test of the page checks that every link has a target.
struct Definition {
  std::string_view id;
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] const std::vector<Definition>& glossary();
[[nodiscard]] std::string term(std::string_view id);                         // with its own name
[[nodiscard]] std::string term(std::string_view id, std::string_view text);  // text is escaped

// A table whose cells are HTML already. A first column that names its row becomes its header.
class HtmlTable {
 public:
  HtmlTable(std::string_view caption, const std::vector<std::string>& titles);
  // `css_class` of the row: "", "best", ...
  void row(const std::vector<std::string>& cells, std::string_view css_class = "");
  [[nodiscard]] std::string html() const;

 private:
  std::string head_;
  std::string body_;
};

}  // namespace heaptape::analyzers
