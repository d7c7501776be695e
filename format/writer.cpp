#include "format/writer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/block.h"
#include "format/index.h"
#include "format/message.h"
#include "format/output.h"
#include "format/packed_events.h"
#include "format/reader.h"
#include "format/recorded_events.h"

namespace heaptape::format {
namespace {

// Events held back over all threads, in blocks: bounds memory however many threads there are.
constexpr std::size_t max_pending_blocks = 16;
// Buffers kept for the next thread that needs one.
constexpr std::size_t max_spare_buffers = 8;

constexpr std::size_t max_threads_per_block = 10000;

struct Stream {
  std::uint64_t written = 0;  // events of this thread in blocks
  bool described = false;     // by a ThreadInfo on the tape
  std::vector<RecordedEvent> pending;
};

}  // namespace

struct TapeWriter::State {
  State(OutputFile file, const TapeHeader& tape_header, const WriterOptions& writer_options)
      : out(std::move(file)),
        header(tape_header),
        options(writer_options),
        recorded(writer_options.zstd_level),
        packed(writer_options.zstd_level, tape_header.keeps_addresses) {}

  OutputFile out;
  TapeHeader header;
  WriterOptions options;
  IndexBuilder index;
  RecordedEncoder recorded;
  PackedEncoder packed;
  std::unordered_map<std::uint32_t, Stream> streams;
  std::vector<std::uint32_t> waiting;  // threads with pending events, in order of their first
  std::vector<std::vector<RecordedEvent>> spare;
  std::vector<Event> pending_packed;
  std::vector<RunOfEvents> runs;
  Payload payload;
  std::size_t pending = 0;
  std::uint64_t events = 0;

  [[nodiscard]] Result<void> put(BlockKind kind, PayloadView view, IndexEntry entry = {}) {
    HEAPTAPE_TRY(out.append(kind, view));
    entry.kind = kind;
    entry.length_bytes = static_cast<std::uint32_t>(view.size_bytes());
    index.add(entry);
    return {};
  }

  // Writes `runs` as one block.
  [[nodiscard]] Result<void> put_runs() {
    IndexEntry entry;
    entry.first = runs.front().events.front().stamp;
    entry.last = entry.first;
    for (const RunOfEvents& run : runs) {
      entry.events += static_cast<std::uint32_t>(run.events.size());
      entry.first = std::min(entry.first, run.events.front().stamp);
      entry.last = std::max(entry.last, run.events.back().stamp);
    }
    const auto block = recorded.encode(runs);
    if (!block) {
      return out.stick(block.error());
    }
    runs.clear();
    HEAPTAPE_TRY(put(BlockKind::recorded_events, *block, entry));
    events += entry.events;
    return {};
  }

  [[nodiscard]] Result<void> put_packed(std::span<const Event> merged) {
    const auto block = packed.encode(merged);
    if (!block) {
      return out.stick(block.error());
    }
    IndexEntry entry;
    entry.events = packed.block().count;
    entry.first = static_cast<std::uint64_t>(packed.block().first_time_us);
    entry.last = static_cast<std::uint64_t>(packed.block().last_time_us);
    HEAPTAPE_TRY(put(BlockKind::packed_events, *block, entry));
    events += entry.events;
    return {};
  }

  // Events straight from the caller, a block of its own.
  [[nodiscard]] Result<void> put_run(ThreadIndex thread, Stream& stream, std::span<const RecordedEvent> run) {
    runs.assign(1, {thread, stream.written, run});
    stream.written += run.size();
    return put_runs();
  }

  void hold(std::uint32_t thread, Stream& stream, std::span<const RecordedEvent> run) {
    if (run.empty()) {
      return;
    }
    if (stream.pending.empty()) {
      waiting.push_back(thread);
      if (stream.pending.capacity() == 0 && !spare.empty()) {
        stream.pending = std::move(spare.back());
        spare.pop_back();
      }
    }
    stream.pending.insert(stream.pending.end(), run.begin(), run.end());
    pending += run.size();
  }

  // Forgets the pending events of a stream; the caller takes it off `waiting`.
  void emptied(Stream& stream) {
    pending -= stream.pending.size();
    stream.written += stream.pending.size();
    stream.pending.clear();
    if (spare.size() < max_spare_buffers) {
      spare.push_back(std::exchange(stream.pending, {}));
    } else {
      std::vector<RecordedEvent>().swap(stream.pending);
    }
  }

  [[nodiscard]] Result<void> flush_stream(std::uint32_t thread) {
    const auto found = streams.find(thread);
    if (found == streams.end() || found->second.pending.empty()) {
      return {};
    }
    waiting.erase(std::find(waiting.begin(), waiting.end(), thread));
    runs.assign(1, {ThreadIndex{thread}, found->second.written, found->second.pending});
    const Result<void> done = put_runs();
    emptied(found->second);
    return done;
  }

  // What many threads have pending shares blocks, so that a thread with little to tell costs little.
  [[nodiscard]] Result<void> flush() {
    if (!pending_packed.empty()) {
      HEAPTAPE_TRY(put_packed(pending_packed));
      pending_packed.clear();
    }
    runs.clear();
    std::size_t count = 0;
    std::size_t done = 0;  // streams in blocks
    for (std::size_t i = 0; i <= waiting.size(); ++i) {
      const Stream* next = i < waiting.size() ? &streams[waiting[i]] : nullptr;
      if (!runs.empty() && (next == nullptr || count + next->pending.size() > options.events_per_block)) {
        HEAPTAPE_TRY(put_runs());
        count = 0;
        for (; done < i; ++done) {
          emptied(streams[waiting[done]]);
        }
      }
      if (next != nullptr) {
        runs.push_back({ThreadIndex{waiting[i]}, next->written, next->pending});
        count += next->pending.size();
      }
    }
    waiting.clear();
    return {};
  }

  // Every thread with events is described, so that a reader need not look for them.
  [[nodiscard]] Result<void> describe_threads() {
    std::vector<ThreadInfo> threads;
    for (const auto& [thread, stream] : streams) {
      if (!stream.described) {
        threads.push_back({ThreadIndex{thread}, 0, 0, 0, {}});
      }
    }
    std::sort(threads.begin(), threads.end(),
              [](const ThreadInfo& a, const ThreadInfo& b) { return a.thread < b.thread; });
    for (std::size_t i = 0; i < threads.size(); i += max_threads_per_block) {
      const std::size_t n = std::min(max_threads_per_block, threads.size() - i);
      encode_threads(std::span(threads).subspan(i, n), payload);
      HEAPTAPE_TRY(put(BlockKind::threads, payload));
    }
    return {};
  }
};

TapeWriter::TapeWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TapeWriter::TapeWriter(TapeWriter&&) noexcept = default;
TapeWriter& TapeWriter::operator=(TapeWriter&&) noexcept = default;
TapeWriter::~TapeWriter() {
  if (state_) {
    [[maybe_unused]] const auto nobody_to_tell = state_->flush();
  }
}

Result<TapeWriter> TapeWriter::create(const std::filesystem::path& path, const TapeHeader& header,
                                      const WriterOptions& options) {
  if (options.events_per_block == 0 || options.events_per_block > max_events_per_block) {
    return failure(ExitCode::usage, "a block takes 1 to {} events, not {}", max_events_per_block,
                   options.events_per_block);
  }
  auto out = OutputFile::create(path);
  if (!out) {
    return Failure(out.error());
  }
  auto state = std::make_unique<State>(std::move(*out), header, options);
  encode_header(header, state->payload);
  HEAPTAPE_TRY(state->put(BlockKind::header, state->payload));
  return TapeWriter(std::move(state));
}

Result<void> TapeWriter::append(ThreadIndex thread, std::span<const RecordedEvent> events) {
  State& s = *state_;
  HEAPTAPE_TRY(s.out.state());
  if (s.header.form != TapeForm::recorded) {
    return failure(ExitCode::usage, "a packed tape takes merged events only");
  }
  const auto number = static_cast<std::uint32_t>(thread);
  Stream& stream = s.streams[number];
  while (!events.empty()) {
    const std::size_t room = s.options.events_per_block - stream.pending.size();
    const std::span<const RecordedEvent> part = events.first(std::min(room, events.size()));
    events = events.subspan(part.size());
    if (part.size() == s.options.events_per_block) {
      HEAPTAPE_TRY(s.put_run(thread, stream, part));
      continue;
    }
    s.hold(number, stream, part);
    if (stream.pending.size() == s.options.events_per_block) {
      HEAPTAPE_TRY(s.flush_stream(number));
    }
  }
  if (s.pending > max_pending_blocks * s.options.events_per_block) {
    return s.flush();
  }
  return {};
}

Result<void> TapeWriter::append(std::span<const Event> events) {
  State& s = *state_;
  HEAPTAPE_TRY(s.out.state());
  if (s.header.form != TapeForm::packed) {
    return failure(ExitCode::usage, "a recorded tape takes events by thread only");
  }
  while (!events.empty()) {
    const std::size_t room = s.options.events_per_block - s.pending_packed.size();
    const std::span<const Event> part = events.first(std::min(room, events.size()));
    events = events.subspan(part.size());
    if (part.size() == s.options.events_per_block) {
      HEAPTAPE_TRY(s.put_packed(part));
      continue;
    }
    s.pending_packed.insert(s.pending_packed.end(), part.begin(), part.end());
    if (s.pending_packed.size() == s.options.events_per_block) {
      HEAPTAPE_TRY(s.put_packed(s.pending_packed));
      s.pending_packed.clear();
    }
  }
  return {};
}

Result<void> TapeWriter::watermark(const Watermark& mark) {
  HEAPTAPE_TRY(state_->flush());
  encode_watermark(mark, state_->payload);
  return state_->put(BlockKind::watermark, state_->payload);
}

Result<void> TapeWriter::thread(const ThreadInfo& info) {
  state_->streams[static_cast<std::uint32_t>(info.thread)].described = true;
  encode_threads({&info, 1}, state_->payload);
  return state_->put(BlockKind::threads, state_->payload);
}

Result<void> TapeWriter::modules(std::span<const ModuleInfo> modules) {
  encode_modules(modules, state_->payload);
  return state_->put(BlockKind::modules, state_->payload);
}

Result<void> TapeWriter::resident(std::span<const ResidentSample> samples) {
  encode_resident(samples, state_->payload);
  return state_->put(BlockKind::resident, state_->payload);
}

Result<void> TapeWriter::gap(const Gap& gap) {
  HEAPTAPE_TRY(state_->flush_stream(static_cast<std::uint32_t>(gap.thread)));
  encode_gap(gap, state_->payload);
  return state_->put(BlockKind::gap, state_->payload);
}

Result<void> TapeWriter::marker(const Marker& marker) {
  encode_markers({&marker, 1}, state_->payload);
  return state_->put(BlockKind::markers, state_->payload);
}

Result<void> TapeWriter::finish(const TapeFooter& footer, const MergeReport* merged,
                                const Damage* source_damage) {
  State& s = *state_;
  HEAPTAPE_TRY(s.flush());
  HEAPTAPE_TRY(s.describe_threads());
  // Once more, for the reader of a tape whose beginning is damaged.
  encode_header(s.header, s.payload);
  HEAPTAPE_TRY(s.put(BlockKind::header, s.payload));
  FooterBlock block;
  block.footer = footer;
  block.footer.events = s.events;
  block.blocks = s.out.blocks();
  if (merged != nullptr) {
    block.merged = *merged;
  }
  if (source_damage != nullptr) {
    block.source_damage = {source_damage->truncated, source_damage->bad_blocks, source_damage->skipped_bytes,
                           source_damage->missing_blocks, source_damage->missing_events};
  }
  ColumnWriter column(std::max(1, s.options.zstd_level));
  column.start();
  const std::span<const std::byte> entries = s.index.bytes();
  ByteSink& sink = column.open(ColumnId::index, entries.size());
  for (const std::byte byte : entries) {
    sink.put_byte(static_cast<std::uint8_t>(byte));
  }
  const auto columns = column.finish();
  // An index too large for a block is left out: a reader then scans.
  if (columns && !columns->empty() && columns->front().data.size() < max_payload_bytes / 2) {
    block.index = columns->front();
  }
  encode_footer(block, s.payload);
  return s.out.finish(s.payload);
}

std::uint64_t TapeWriter::bytes_written() const noexcept { return state_->out.bytes(); }
std::uint64_t TapeWriter::events_written() const noexcept { return state_->events; }

}  // namespace heaptape::format
