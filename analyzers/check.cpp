#include "analyzers/check.h"

#include <fmt/format.h>

#include "format/base/units.h"

namespace heaptape::analyzers {

using format::EndReason;
using format::format_count;
using format::format_size;
using format::MergeReport;
using format::TapeInfo;

namespace {

void find_faults(std::vector<std::string>& out, const MergeReport& merged, const TapeInfo& info) {
  const format::Damage& damage = info.damage;
  const format::RecorderStats& recorder = info.footer.recorder;
  const auto fault = [&](bool found, std::string words) {
    if (found) {
      out.push_back(std::move(words));
    }
  };
  fault(damage.truncated, "the tape is cut off: its end is missing");
  fault(damage.bad_blocks != 0 || damage.missing_blocks != 0,
        fmt::format("{} unreadable place(s) ({}), {} block(s) and at least {} event(s) missing",
                    format_count(damage.bad_blocks), format_size(damage.skipped_bytes),
                    format_count(damage.missing_blocks), format_count(damage.missing_events)));
  fault(merged.gaps != 0, fmt::format("the recorder dropped {} event(s) at {} place(s)",
                                      format_count(merged.lost_events), format_count(merged.gaps)));
  fault(merged.contradictions != 0,
        fmt::format("{} contradiction(s): memory was handed out while it was still live by this tape",
                    format_count(merged.contradictions)));
  fault(recorder.signal_losses != 0, fmt::format("{} call(s) in signal handlers could not be recorded",
                                                 format_count(recorder.signal_losses)));
  fault(recorder.lost_threads != 0,
        fmt::format("{} thread(s) found no ring and were not recorded", format_count(recorder.lost_threads)));
  fault(recorder.own_allocations != 0,
        fmt::format("{} allocation(s) are the recorder's own, not the program's",
                    format_count(recorder.own_allocations)));
  // A recording from the start has seen every birth; a log made by others may begin anywhere.
  fault(merged.unknown_releases != 0 && info.header.from_start && !info.header.source.starts_with("imported"),
        fmt::format("{} release(s) of memory that was never seen allocated, although the recording began "
                    "with the program",
                    format_count(merged.unknown_releases)));
}

void find_notes(std::vector<std::string>& out, const MergeReport& merged, const TapeInfo& info) {
  const auto note = [&](bool found, std::string words) {
    if (found) {
      out.push_back(std::move(words));
    }
  };
  note(info.footer.reason == EndReason::killed,
       fmt::format("the program was killed by signal {}: what it still held is no leak", info.footer.value));
  note(info.footer.reason == EndReason::stopped, "the recording was stopped before the program ended");
  note(!info.header.from_start, "the recording began while the program ran: earlier blocks are unknown");
  note(
      merged.unknown_releases != 0 && (!info.header.from_start || info.header.source.starts_with("imported")),
      fmt::format("{} release(s) of blocks born before the recording",
                  format_count(merged.unknown_releases)));
  note(merged.open_reallocs != 0, fmt::format("{} realloc(s) had begun but not ended at the end of the tape",
                                              format_count(merged.open_reallocs)));
  note(merged.repairs != 0,
       fmt::format("{} event(s) were put behind the release they must follow (usual with threads)",
                   format_count(merged.repairs)));
  note(merged.late_events != 0,
       fmt::format("{} event(s) were published late", format_count(merged.late_events)));
  note(info.footer.recorder.stalls != 0,
       fmt::format(
           "threads waited {} time(s) for the recorder, {} in all", format_count(info.footer.recorder.stalls),
           format::format_duration(
               std::chrono::nanoseconds(static_cast<std::int64_t>(info.footer.recorder.stalled_ns)))));
  note(info.index_rebuilt, "the index was missing or wrong and was rebuilt by a scan");
}

}  // namespace

Verdict judge(const MergeReport& merged, const TapeInfo& info) {
  Verdict verdict;
  find_faults(verdict.faults, merged, info);
  find_notes(verdict.notes, merged, info);
  verdict.sound = verdict.faults.empty();
  return verdict;
}

}  // namespace heaptape::analyzers
