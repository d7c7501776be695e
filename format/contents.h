// Puts together what the blocks of a tape say, block by block, for scan and index alike.
//
// Takes whole blocks in file order; refuses (with the reason) those whose payload contradicts
// itself or the blocks before. Memory: what the blocks hold besides events, and 24 bytes per block.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "format/block.h"
#include "format/index.h"
#include "format/message.h"
#include "format/scan.h"

namespace heaptape::format {

class ContentsBuilder {
 public:
  // A block whose checksums are right, at `place.offset`. An error: refused, as if damaged.
  [[nodiscard]] Result<void> take(const BlockPlace& place, PayloadView payload);
  // A block of events or a watermark that only its index entry tells of.
  void take_unread(const BlockPlace& place, const IndexEntry& entry);

  [[nodiscard]] bool has_header() const noexcept { return has_header_; }
  [[nodiscard]] const std::optional<FooterBlock>& footer() const noexcept { return footer_; }
  [[nodiscard]] Damage& damage() noexcept { return contents_.info.damage; }
  // The entry of the block taken last.
  [[nodiscard]] const IndexEntry& last_entry() const noexcept { return entry_; }

  // Everything taken; `has_header` must hold.
  [[nodiscard]] TapeContents finish();

 private:
  [[nodiscard]] Result<void> take_header(PayloadView payload);
  [[nodiscard]] Result<void> take_recorded(PayloadView payload);
  [[nodiscard]] Result<void> take_packed(PayloadView payload);
  void add_source_damage();

  TapeContents contents_;
  std::optional<FooterBlock> footer_;
  std::unordered_map<std::uint32_t, std::uint64_t> next_of_thread_;
  std::map<std::uint32_t, ThreadInfo> threads_;
  std::map<std::uint64_t, ModuleInfo> modules_;
  IndexEntry entry_;
  std::uint64_t next_packed_ = 0;
  std::uint64_t recorded_events_ = 0;
  std::uint64_t packed_events_ = 0;
  bool has_header_ = false;
};

}  // namespace heaptape::format
