#include <utility>
#include <vector>

#include "format/block_reader.h"
#include "format/cursors.h"
#include "format/merge.h"

namespace heaptape::format {
namespace {

// Small enough to stay in the cache between merge and consumer.
constexpr std::size_t batch_events = 2048;
// Recorders write a watermark several times a second. Without one the merge would have to hold the whole
// tape.
constexpr std::size_t max_buffered_events = std::size_t{1} << 26;

class RecordedCursor final : public EventCursor {
 public:
  RecordedCursor(const InputFile& file, const TapeContents& contents)
      : contents_(contents), blocks_(file), merger_(contents.info.header) {}

  [[nodiscard]] Result<std::span<const Event>> next() override {
    while (true) {
      batch_.clear();
      merger_.take(batch_, batch_events);
      report_ = merger_.report();
      if (!batch_.empty()) {
        return std::span<const Event>(batch_);
      }
      if (finished_) {
        report_.lost_events += contents_.info.damage.missing_events;
        return std::span<const Event>{};
      }
      HEAPTAPE_TRY(feed());
    }
  }

  [[nodiscard]] const MergeReport& report() const noexcept override { return report_; }
  [[nodiscard]] std::uint32_t slots() const noexcept override { return merger_.slots(); }
  [[nodiscard]] double progress() const noexcept override {
    return contents_.blocks.empty()
               ? 1.0
               : static_cast<double>(next_) / static_cast<double>(contents_.blocks.size());
  }

 private:
  // One block more for the merge.
  Result<void> feed() {
    if (next_ == contents_.blocks.size()) {
      if (contents_.loss_at_end) {
        merger_.damaged();
      }
      merger_.finish(contents_.has_footer);
      finished_ = true;
      return {};
    }
    const BlockPlace& place = contents_.blocks[next_++];
    if (place.after_loss) {
      merger_.damaged();
    }
    switch (place.kind) {
      case BlockKind::recorded_events:
        return feed_events(place);
      case BlockKind::gap:
        return blocks_.read(place).and_then(decode_gap).map([this](const Gap& gap) { merger_.gap(gap); });
      default:
        return blocks_.read(place).and_then(decode_watermark).map([this](const Watermark& mark) {
          merger_.watermark(mark);
        });
    }
  }

  Result<void> feed_events(const BlockPlace& place) {
    std::vector<RecordedEvent> events;
    const auto block = blocks_.read_recorded(place, decoder_, events);
    if (!block) {
      return Failure(block.error());
    }
    if (merger_.load().buffered_events > max_buffered_events - events.size()) {
      return blocks_.located(
          place,
          Error(ExitCode::bad_tape,
                fmt::format("more than {} events without a watermark; such a tape cannot be put in order",
                            max_buffered_events)));
    }
    if (block->runs.size() == 1) {
      merger_.add(block->runs.front().thread, std::move(events));
      return {};
    }
    auto from = events.cbegin();
    for (const EventRun& run : block->runs) {
      merger_.add(run.thread, std::vector<RecordedEvent>(from, from + run.count));
      from += run.count;
    }
    return {};
  }

  const TapeContents& contents_;
  BlockReader blocks_;
  RecordedDecoder decoder_;
  Merger merger_;
  MergeReport report_;
  std::vector<Event> batch_;
  std::size_t next_ = 0;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<EventCursor> make_recorded_cursor(const InputFile& file, const TapeContents& contents) {
  return std::make_unique<RecordedCursor>(file, contents);
}

}  // namespace heaptape::format
