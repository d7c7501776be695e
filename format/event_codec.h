// What the columns of both forms have in common: which properties a kind carries, alignments,
// sites, and addresses. Each writer has a reader that is its mirror; both start over in every block.
// The readers accept any bytes and turn bad rather than fail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/varint.h"
#include "format/event.h"

namespace heaptape::format {

inline constexpr std::uint8_t kind_limit = 64;  // kinds on a tape are below

// Which properties an event of a kind carries. A kind that this version does not know carries all,
// so that kinds can be added without a new version of the format.
struct KindTraits {
  bool size = true;
  bool alignment = true;
  bool address = true;
  bool yields = false;    // an object, unless the call fails
  bool releases = false;  // one, unless its argument is null
};
[[nodiscard]] constexpr KindTraits kind_traits(Kind kind) noexcept {
  if (!is_known(kind)) {
    return {};
  }
  KindTraits traits;
  traits.size = is_acquire(kind) || is_realloc(kind) || kind == Kind::free_sized ||
                kind == Kind::free_aligned_sized || kind == Kind::operator_delete_sized ||
                kind == Kind::operator_delete_array_sized || kind == Kind::malloc_trim;
  traits.alignment = kind == Kind::posix_memalign || kind == Kind::aligned_alloc || kind == Kind::memalign ||
                     (kind >= Kind::operator_new && kind <= Kind::operator_new_array_nothrow) ||
                     (kind >= Kind::free_aligned_sized && kind <= Kind::operator_delete_array_sized);
  traits.address = kind != Kind::malloc_trim;
  traits.yields = is_acquire(kind) || is_realloc(kind);
  traits.releases = is_release(kind) || is_realloc(kind);
  return traits;
}
[[nodiscard]] constexpr std::array<KindTraits, kind_limit> all_kind_traits() noexcept {
  std::array<KindTraits, kind_limit> all{};
  for (std::uint8_t i = 0; i < kind_limit; ++i) {
    all[i] = kind_traits(Kind{i});
  }
  return all;
}
inline constexpr std::array<KindTraits, kind_limit> traits_of_kind = all_kind_traits();

// One byte for a power of two and for none; others follow in full.
void put_alignment(ByteSink& sink, std::uint64_t alignment) noexcept;
[[nodiscard]] std::uint64_t get_alignment(ByteSource& source) noexcept;
inline constexpr std::size_t max_alignment_bytes = 1 + max_varint_bytes;

// Sites: numbers in a dictionary that grows as they come.
class SiteWriter {
 public:
  void start();
  void put(ByteSink& sink, SiteId site);

 private:
  void grow();
  [[nodiscard]] std::size_t bucket(std::uint64_t site) const noexcept;

  std::vector<std::uint64_t> known_;
  std::vector<std::uint32_t> buckets_;  // position in `known_` + 1; 0: empty. At most half full
};
class SiteReader {
 public:
  void start() {
    known_.clear();
    bad_ = false;
  }
  [[nodiscard]] SiteId get(ByteSource& source);
  [[nodiscard]] bool bad() const noexcept { return bad_; }

 private:
  std::vector<std::uint64_t> known_;
  bool bad_ = false;
};
inline constexpr std::size_t max_site_bytes = 2 * max_varint_bytes;

// Addresses: how many addresses ago this one came last; for one that has not come, its distance
// from the latest such one, in a column of its own.
class AddressWriter {
 public:
  // `max_addresses` in this block.
  void start(std::size_t max_addresses);
  void put(ByteSink& references, ByteSink& new_addresses, std::uint64_t address) noexcept;

 private:
  static constexpr unsigned table_bits = 14;

  std::vector<std::uint64_t> history_;
  std::size_t count_ = 0;
  std::uint64_t last_new_ = 0;
  // By a hash of the address: base_ + its position in `history_`. Entries below `base_` are of
  // earlier blocks; an entry that another address took over costs bytes, never truth.
  std::array<std::uint32_t, std::size_t{1} << table_bits> table_{};
  std::uint32_t base_ = 1;
};
class AddressReader {
 public:
  void start(std::size_t max_addresses);
  [[nodiscard]] std::uint64_t get(ByteSource& references, ByteSource& new_addresses) noexcept;
  [[nodiscard]] bool bad() const noexcept { return bad_; }

 private:
  std::vector<std::uint64_t> history_;
  std::size_t count_ = 0;
  std::uint64_t last_new_ = 0;
  bool bad_ = false;
};

}  // namespace heaptape::format
