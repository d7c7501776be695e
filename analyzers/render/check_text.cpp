#include "analyzers/render/check_text.h"

#include <fmt/format.h>

#include "analyzers/render/table.h"
#include "analyzers/render/tape_words.h"
#include "format/base/units.h"

namespace heaptape::analyzers {

using format::format_count;
using format::MergeReport;
using format::TapeInfo;

std::string check_text(std::string_view tape, const Verdict& verdict, const MergeReport& merged,
                       const TapeInfo& info, const Style& style) {
  std::string out =
      fmt::format("{}: {}\n", printable(tape), verdict.sound ? style.good("sound") : style.bad("UNSOUND"));
  for (const std::string& fault : verdict.faults) {
    out += fmt::format("  fault: {}\n", printable(fault));
  }
  for (const std::string& note : verdict.notes) {
    out += fmt::format("  note: {}\n", printable(note));
  }
  for (const std::string& note : info.damage.notes) {
    out += fmt::format("  damage: {}\n", printable(note));
  }
  TextTable table({{"", Align::left}, {""}});
  table.row({"events", format_count(merged.events)});
  table.row({"contradictions", format_count(merged.contradictions)});
  table.row({"repairs", format_count(merged.repairs)});
  table.row({"gaps", format_count(merged.gaps)});
  table.row({"lost_events", format_count(merged.lost_events)});
  table.row({"unknown_frees", format_count(merged.unknown_releases)});
  table.row({"open_reallocs", format_count(merged.open_reallocs)});
  table.row({"truncated", info.damage.truncated ? "yes" : "no"});
  return out + table.text();
}

Json check_json(std::string_view tape, const Verdict& verdict, const MergeReport& merged,
                const TapeInfo& info) {
  Json json = document("check", 1);
  json["tape"] = tape;
  json["sound"] = verdict.sound;
  json["faults"] = verdict.faults;
  json["notes"] = verdict.notes;
  json["events"] = merged.events;
  json["contradictions"] = merged.contradictions;
  json["repairs"] = merged.repairs;
  json["gaps"] = merged.gaps;
  json["lost_events"] = merged.lost_events;
  json["unknown_frees"] = merged.unknown_releases;
  json["open_reallocs"] = merged.open_reallocs;
  json["truncated"] = info.damage.truncated;
  json["late_events"] = merged.late_events;
  json["implied_by_damage"] = merged.implied_by_damage;
  json["end"] = {{"reason", end_key(info.footer.reason)}, {"value", info.footer.value}};
  json["damage"] = damage_json(info.damage);
  json["recorder"] = recorder_json(info.footer.recorder);
  return json;
}

}  // namespace heaptape::analyzers
