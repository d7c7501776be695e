#include "analyzers/render/html/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/base/units.h"

namespace heaptape::analyzers {

using format::format_count;
using format::format_duration;
using format::format_size;

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n') {
          out += c;
        }
    }
  }
  return out;
}

std::string script_json(const Json& json) {
  std::string out;
  for (const char c : dump_line(json)) {
    if (c == '<') {
      out += "\\u003c";  // neither </script> nor <!--
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_size(std::uint64_t bytes) {
  return fmt::format(R"(<data value="{}" title="{} bytes">{}</data>)", bytes, format_count(bytes),
                     format_size(bytes));
}

std::string html_count(std::uint64_t n) {
  return fmt::format(R"(<data value="{}">{}</data>)", n, format_count(n));
}

std::string html_time(std::int64_t ns) {
  return fmt::format(R"(<data value="{}" title="{:.6f} s">{}</data>)", ns, static_cast<double>(ns) / 1e9,
                     format_duration(std::chrono::nanoseconds(ns)));
}

std::string html_bar(double share) {
  const double percent = share > 0 ? std::min(share, 1.0) * 100 : 0;
  return fmt::format(R"(<span class="bar" aria-hidden="true"><span style="width:{:.2f}%"></span></span>)",
                     percent);
}

std::string term(std::string_view id) {
  for (const Definition& d : glossary()) {
    if (d.id == id) {
      return term(id, d.name);
    }
  }
  return term(id, id);
}

std::string term(std::string_view id, std::string_view text) {
  std::string_view meaning;
  for (const Definition& d : glossary()) {
    meaning = d.id == id ? d.text : meaning;
  }
  return fmt::format(R"(<a class="term" href="#term-{}" title="{}">{}</a>)", id, escaped(meaning),
                     escaped(text));
}

HtmlTable::HtmlTable(std::string_view caption, const std::vector<std::string>& titles) {
  head_ = fmt::format("<div class=\"scroll\"><table><caption>{}</caption><thead><tr>", escaped(caption));
  for (const std::string& title : titles) {
    head_ += "<th scope=\"col\">" + title + "</th>";
  }
  head_ += "</tr></thead>\n<tbody>\n";
}

void HtmlTable::row(const std::vector<std::string>& cells, std::string_view css_class) {
  body_ += css_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", css_class);
  for (std::size_t at = 0; at < cells.size(); ++at) {
    body_ += at == 0 ? "<th scope=\"row\">" + cells[at] + "</th>" : "<td>" + cells[at] + "</td>";
  }
  body_ += "</tr>\n";
}

std::string HtmlTable::html() const { return head_ + body_ + "</tbody></table></div>\n"; }

}  // namespace heaptape::analyzers
