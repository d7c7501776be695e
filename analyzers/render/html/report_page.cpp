#include "analyzers/render/html/report_page.h"

#include <fmt/format.h>

#include "analyzers/render/html/assets.h"
#include "analyzers/render/html/html.h"
#include "analyzers/render/tape_words.h"

namespace heaptape::analyzers {
namespace {

std::string definitions() {
  std::string out = "<section id=\"definitions\"><h2>What the words mean</h2>\n<dl>\n";
  for (const Definition& d : glossary()) {
    out += fmt::format("<dt id=\"term-{}\">{}</dt><dd>{}</dd>\n", d.id, escaped(d.name), escaped(d.text));
  }
  return out + "</dl></section>\n";
}

std::string navigation(const ReportInput& input) {
  std::string out = "<nav aria-label=\"Parts of this page\"><a href=\"#overview\">Overview</a>";
  out += input.replay != nullptr ? "<a href=\"#replay\">Allocators compared</a>" : "";
  out +=
      "<a href=\"#memory\">Memory over time</a><a href=\"#sizes\">Sizes</a><a "
      "href=\"#lifetimes\">Lifetimes</a>"
      "<a href=\"#threads\">Threads</a><a href=\"#recording\">Recording</a><a "
      "href=\"#definitions\">Words</a></nav>\n";
  return out;
}

}  // namespace

std::string report_page(const ReportInput& input) {
  const std::string program = escaped(program_name(input.info.header));
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>Heaptape: {}</title>\n<style>",
      program);
  page += uplot_css;
  page += report_css;
  page += fmt::format(
      "</style>\n</head>\n<body>\n<header><h1>{}</h1><p class=\"command\"><code>{}</code></p></header>\n",
      program, escaped(command_line(input.info.header, 400)));
  page += navigation(input);
  page += "<main>\n";
  page += overview_section(input);
  page += replay_section(input);
  page += memory_section(input);
  page += sizes_section(input);
  page += lifetimes_section(input);
  page += threads_section(input);
  page += recording_section(input);
  page += definitions();
  page += "</main>\n<footer><p>Made by heaptape. This page holds everything it shows.</p></footer>\n";
  page +=
      "<script type=\"application/json\" id=\"chart-data\">" + script_json(chart_data(input)) + "</script>\n";
  page += "<script>";
  page += uplot_js;
  page += "</script>\n<script>";
  page += report_js;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace heaptape::analyzers
