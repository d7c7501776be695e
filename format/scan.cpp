#include "format/scan.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "format/contents.h"

namespace heaptape::format {
namespace {

constexpr std::size_t max_notes = 16;
constexpr std::size_t search_bytes = std::size_t{64} << 10;
// A file that starts without the magic may be a tape with a damaged beginning, but no farther.
constexpr std::uint64_t max_search_for_start_bytes = 2ULL * max_payload_bytes;

class Scanner {
 public:
  explicit Scanner(const InputFile& file) : file_(file), window_(file) {}

  Result<TapeContents> run();

 private:
  // Whether a whole block starts at `position_`; if so it was taken, and `position_` is behind it.
  Result<bool> take_block();
  Result<void> skip_damage();
  Result<std::uint64_t> find_magic(std::uint64_t from);
  void note(std::string text);
  void end_of_damage();
  Result<void> refuse_newer(const BlockHeader& header) const;
  Result<void> take(const BlockHeader& header);

  const InputFile& file_;
  FileWindow window_;
  ContentsBuilder contents_;
  IndexBuilder index_;
  Payload payload_;
  std::uint64_t position_ = 0;
  std::uint64_t damage_start_ = 0;  // where bytes stopped making sense; position_ if they do
  std::uint64_t expected_sequence_ = 0;
  std::uint64_t wasted_bytes_ = 0;  // checked in vain: bounds the time spent on a hostile file
  std::size_t notes_left_out_ = 0;
  bool loss_ = false;        // since the last block that the cursors read
  bool incomplete_ = false;  // the last block runs past the end of the file
  bool is_tape_ = false;     // a whole block was seen, whatever is in it
  bool ended_ = false;       // the end block was seen
  bool index_fits_ = false;
};

void Scanner::note(std::string text) {
  if (contents_.damage().notes.size() < max_notes) {
    contents_.damage().notes.push_back(std::move(text));
  } else {
    ++notes_left_out_;
  }
}

Result<std::uint64_t> Scanner::find_magic(std::uint64_t from) {
  const std::string_view magic(reinterpret_cast<const char*>(block_magic.data()), block_magic.size());
  while (from < file_.size_bytes()) {
    const auto bytes = window_.at(from, search_bytes);
    if (!bytes) {
      return Failure(bytes.error());
    }
    const std::string_view view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    const std::size_t found = view.find(magic);
    if (found != std::string_view::npos) {
      return from + found;
    }
    if (view.size() < magic.size()) {
      break;
    }
    from += view.size() - (magic.size() - 1);
  }
  return file_.size_bytes();
}

void Scanner::end_of_damage() {
  if (damage_start_ == position_) {
    return;
  }
  Damage& damage = contents_.damage();
  const std::uint64_t size = position_ - damage_start_;
  if (!(incomplete_ && position_ == file_.size_bytes())) {
    damage.bad_blocks += 1;
    note(fmt::format("{} bytes from byte {} on are no whole block", size, damage_start_));
  } else {
    note(fmt::format("the last block, at byte {}, is incomplete", damage_start_));
  }
  damage.skipped_bytes += size;
  loss_ = true;
  damage_start_ = position_;
}

Result<void> Scanner::refuse_newer(const BlockHeader& header) const {
  if (header.version > format_version) {
    return failure(ExitCode::bad_tape,
                   "'{}' is a tape of format {}, newer than this heaptape reads ({}): update heaptape",
                   file_.path(), header.version, format_version);
  }
  if (!is_known(header.kind) && (header.flags & BlockHeader::essential) != 0) {
    return failure(ExitCode::bad_tape,
                   "'{}' has blocks of kind {}, which this heaptape cannot read nor skip: update heaptape",
                   file_.path(), static_cast<unsigned>(header.kind));
  }
  return {};
}

// A block whose checksums are right, its payload in `payload_`.
Result<void> Scanner::take(const BlockHeader& header) {
  const std::uint64_t missing_before = header.sequence - expected_sequence_;
  BlockPlace place{position_, header.length_bytes, header.payload_crc, header.kind, true, false};
  place.after_loss = loss_ || missing_before != 0 || damage_start_ != position_;
  if (auto taken = contents_.take(place, payload_); !taken) {
    return taken;
  }
  if (missing_before != 0) {
    contents_.damage().missing_blocks += missing_before;
    note(fmt::format("{} blocks are missing before byte {}", missing_before, position_));
  }
  end_of_damage();
  loss_ = place.after_loss;
  switch (header.kind) {
    case BlockKind::recorded_events:
    case BlockKind::packed_events:
    case BlockKind::gap:
    case BlockKind::watermark:
      loss_ = false;  // told to the cursor by this block
      break;
    case BlockKind::footer: {
      const auto footer = decode_footer(payload_);
      ColumnReader column;
      index_fits_ = false;
      if (footer && column.start({&footer->index, 1})) {
        const auto entries = column.open(ColumnId::index, index_.bytes().size());
        index_fits_ = entries && std::ranges::equal(entries->rest(), index_.bytes());
      }
      break;
    }
    case BlockKind::end:
      ended_ = true;
      break;
    default:
      break;
  }
  index_.add(contents_.last_entry());
  expected_sequence_ = header.sequence + 1;
  return {};
}

Result<bool> Scanner::take_block() {
  const auto head = window_.at(position_, block_header_bytes);
  if (!head) {
    return Failure(head.error());
  }
  if (head->size() < block_header_bytes) {
    incomplete_ = true;
    return false;
  }
  const auto header = decode_block_header(head->first<block_header_bytes>());
  if (!header) {
    return false;
  }
  HEAPTAPE_TRY(refuse_newer(*header));
  if (header->length_bytes > max_payload_bytes || header->length_bytes % sizeof(std::uint64_t) != 0) {
    note(fmt::format("the block at byte {} claims {} bytes", position_, header->length_bytes));
    return false;
  }
  const std::uint64_t end = position_ + block_header_bytes + header->length_bytes;
  if (end > file_.size_bytes()) {
    incomplete_ = true;
    return false;
  }
  if (header->sequence < expected_sequence_) {
    note(fmt::format("the block at byte {} is out of sequence", position_));
    return false;
  }
  const auto bytes = window_.at(position_ + block_header_bytes, header->length_bytes);
  if (!bytes) {
    return Failure(bytes.error());
  }
  payload_.resize(header->length_bytes / sizeof(std::uint64_t));
  if (bytes->size() == header->length_bytes) {
    std::memcpy(payload_.data(), bytes->data(), bytes->size());
  }
  if (bytes->size() != header->length_bytes || crc32c(*bytes) != header->payload_crc) {
    wasted_bytes_ += header->length_bytes;
    if (wasted_bytes_ > 4 * file_.size_bytes()) {
      position_ = end;  // believe the length: somebody made this file to keep us busy
    }
    return false;
  }
  is_tape_ = true;
  if (auto taken = take(*header); !taken) {
    note(fmt::format("the block at byte {} was left out: {}", position_, taken.error().message()));
    position_ = end;
    return false;
  }
  position_ = end;
  damage_start_ = end;
  incomplete_ = false;
  return true;
}

Result<TapeContents> Scanner::run() {
  while (position_ < file_.size_bytes()) {
    const std::uint64_t before = position_;
    const auto taken = take_block();
    if (!taken) {
      return Failure(taken.error());
    }
    if (*taken) {
      continue;
    }
    const auto next = find_magic(std::max(position_, before + 1));
    if (!next) {
      return Failure(next.error());
    }
    position_ = *next;
    if (!is_tape_ && position_ > max_search_for_start_bytes) {
      break;
    }
  }
  if (!is_tape_) {
    return failure(ExitCode::bad_tape, "'{}' is not a tape: no block of one was found", file_.path());
  }
  if (!contents_.has_header()) {
    return failure(ExitCode::bad_tape,
                   "'{}' cannot be read: its header block is damaged, and the copy at its end is missing",
                   file_.path());
  }
  end_of_damage();
  if (notes_left_out_ != 0) {
    contents_.damage().notes.push_back(fmt::format("and {} more", notes_left_out_));
  }
  contents_.damage().truncated = !contents_.footer() || !ended_;
  TapeContents contents = contents_.finish();
  contents.loss_at_end = loss_;
  contents.info.file_bytes = file_.size_bytes();
  contents.info.index_rebuilt = !index_fits_;
  return contents;
}

}  // namespace

Result<TapeContents> scan_whole(const InputFile& file) { return Scanner(file).run(); }

}  // namespace heaptape::format
