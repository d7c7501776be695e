#include "format/reader.h"

#include <utility>

#include "format/block_reader.h"
#include "format/cursors.h"
#include "format/input.h"
#include "format/recorded_events.h"
#include "format/scan.h"

namespace heaptape::format {

struct TapeReader::State {
  InputFile file;
  TapeContents contents;
};

TapeReader::TapeReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TapeReader::TapeReader(TapeReader&&) noexcept = default;
TapeReader& TapeReader::operator=(TapeReader&&) noexcept = default;
TapeReader::~TapeReader() = default;

Result<TapeReader> TapeReader::open(const std::filesystem::path& path, Verify verify) {
  auto file = InputFile::open(path);
  if (!file) {
    return Failure(file.error());
  }
  if (verify == Verify::index) {
    auto indexed = read_by_index(*file);
    if (!indexed) {
      return Failure(indexed.error());
    }
    if (*indexed) {
      return TapeReader(std::make_unique<State>(State{std::move(*file), std::move(**indexed)}));
    }
  }
  auto scanned = scan_whole(*file);
  if (!scanned) {
    return Failure(scanned.error());
  }
  return TapeReader(std::make_unique<State>(State{std::move(*file), std::move(*scanned)}));
}

const TapeInfo& TapeReader::info() const noexcept { return state_->contents.info; }

Result<std::unique_ptr<EventCursor>> TapeReader::events() const {
  return info().header.form == TapeForm::packed ? make_packed_cursor(state_->file, state_->contents)
                                                : make_recorded_cursor(state_->file, state_->contents);
}

Result<void> TapeReader::visit_recorded(RecordedVisitor visit, void* context) const {
  if (info().header.form != TapeForm::recorded) {
    return failure(ExitCode::usage, "'{}' is a packed tape: it has no threads' streams", state_->file.path());
  }
  BlockReader blocks(state_->file);
  RecordedDecoder decoder;
  std::vector<RecordedEvent> events;
  for (const BlockPlace& place : state_->contents.blocks) {
    if (place.kind != BlockKind::recorded_events) {
      continue;
    }
    const auto block = blocks.read_recorded(place, decoder, events);
    if (!block) {
      return Failure(block.error());
    }
    const RecordedEvent* next = events.data();
    for (const EventRun& run : block->runs) {
      if (!visit(context, run.thread, next, run.count)) {
        return {};
      }
      next += run.count;
    }
  }
  return {};
}

}  // namespace heaptape::format
