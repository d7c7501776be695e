#include "analyzers/stats.h"

#include <fmt/format.h>

#include "format/base/units.h"

namespace heaptape::analyzers {

using format::Event;
using format::format_count;
using format::format_size;
using format::TapeInfo;

void StatsAnalysis::consume(std::span<const Event> events) {
  totals_.consume(events);
  sizes_.consume(events);
  lifetimes_.consume(events);
  curve_.consume(events);
  threads_.consume(events);
}

void StatsAnalysis::finish(const format::MergeReport& merged) {
  totals_.finish(merged);
  sizes_.finish(merged);
  lifetimes_.finish(merged);
  curve_.finish(merged);
  threads_.finish(merged);
  merged_ = merged;
}

Stats StatsAnalysis::result() const noexcept {
  return {totals_.result(), sizes_.result(),   lifetimes_.result(),
          curve_.result(),  threads_.result(), merged_};
}

namespace {

std::string blocks(std::uint64_t n) { return fmt::format("{} block{}", format_count(n), n == 1 ? "" : "s"); }
std::string calls(std::uint64_t n) { return fmt::format("{} call{}", format_count(n), n == 1 ? "" : "s"); }

// What is wrong with the tape: numbers below it may be, too.
void about_the_tape(std::vector<std::string>& out, const Stats& stats, const TapeInfo& info) {
  const format::RecorderStats& recorder = info.footer.recorder;
  if (info.damage.truncated) {
    out.push_back("The tape is cut off: blocks live at its end are not leaks, and the totals end early.");
  }
  if (info.damage.bad_blocks != 0 || info.damage.missing_blocks != 0) {
    out.push_back(fmt::format("The tape is damaged: {} of it is unreadable and at least {} are missing.",
                              format_size(info.damage.skipped_bytes), calls(info.damage.missing_events)));
  }
  if (stats.merged.gaps != 0) {
    out.push_back(fmt::format(
        "The recorder dropped {} at {} place{}: use --on-overflow=block for a complete tape.",
        calls(stats.merged.lost_events), format_count(stats.merged.gaps), stats.merged.gaps == 1 ? "" : "s"));
  }
  if (stats.merged.contradictions != 0) {
    out.push_back(
        fmt::format("{} returned memory that was still live by this tape: releases are missing from it.",
                    calls(stats.merged.contradictions)));
  }
  if (recorder.signal_losses + recorder.lost_threads != 0) {
    out.push_back(fmt::format("{} in signal handlers and those of {} thread(s) could not be recorded.",
                              calls(recorder.signal_losses), format_count(recorder.lost_threads)));
  }
  if (recorder.own_allocations != 0) {
    out.push_back(fmt::format("The recorder itself made {} inside the program; that is a fault of Heaptape.",
                              calls(recorder.own_allocations)));
  }
  if (recorder.stalls != 0) {
    out.push_back(
        fmt::format("Threads waited {} times for the recorder, {} in all: times near those are too long.",
                    format_count(recorder.stalls),
                    format::format_duration(std::chrono::nanoseconds(recorder.stalled_ns))));
  }
}

// What is unusual in what the program did.
void about_the_program(std::vector<std::string>& out, const Stats& stats, const TapeInfo& info) {
  const Totals& t = stats.totals;
  if (t.unknown_releases != 0) {
    out.push_back(fmt::format("{} released or resized memory that was not live by this tape{}.",
                              calls(t.unknown_releases),
                              info.header.from_start ? ", although it begins with the program"
                                                     : ": born before the recording began"));
  }
  if (t.failed_calls != 0) {
    out.push_back(fmt::format("{} failed (null result); the largest asked for {}.", calls(t.failed_calls),
                              format_size(t.largest_failed_request)));
  }
  if (stats.lifetimes.mismatched != 0) {
    out.push_back(fmt::format("{} released by the wrong family of calls, as by delete after malloc.",
                              blocks(stats.lifetimes.mismatched)));
  }
  if (stats.sizes.odd_alignments != 0) {
    out.push_back(
        fmt::format("{} asked for an alignment that is no power of two.", calls(stats.sizes.odd_alignments)));
  }
  if (t.zero_size_allocs != 0) {
    out.push_back(fmt::format("{} asked for 0 bytes and got a block.", calls(t.zero_size_allocs)));
  }
  if (t.realloc_zero != 0) {
    out.push_back(fmt::format("{} resized a block to 0 bytes, which allocators treat differently.",
                              calls(t.realloc_zero)));
  }
  if (t.unfinished_reallocs != 0) {
    out.push_back(fmt::format("{} of realloc had begun but not ended when the tape ended.",
                              calls(t.unfinished_reallocs)));
  }
  const std::uint64_t released = stats.lifetimes.released;
  if (released != 0 && stats.lifetimes.released_by_other_thread * 10 >= released) {
    out.push_back(
        fmt::format("{:.1f} % of all released blocks were released by another thread than acquired them.",
                    100.0 * static_cast<double>(stats.lifetimes.released_by_other_thread) /
                        static_cast<double>(released)));
  }
}

}  // namespace

std::vector<std::string> anomalies(const Stats& stats, const TapeInfo& info) {
  std::vector<std::string> out;
  about_the_tape(out, stats, info);
  about_the_program(out, stats, info);
  return out;
}

}  // namespace heaptape::analyzers
