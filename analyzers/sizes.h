// Which sizes and alignments a program asks for.
//
// Sizes up to 16 KiB are counted exactly, larger ones in buckets at most 1/32 of the size wide.
// Only what was acquired counts (a realloc with its new size). Fixed memory, about 160 KiB.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyzers/analysis.h"
#include "analyzers/histogram.h"

namespace heaptape::analyzers {

struct SizeRow {
  std::uint64_t low = 0;  // sizes low to high, both included
  std::uint64_t high = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

struct AlignmentRow {
  std::uint64_t alignment = 0;  // 0: none asked for
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

struct SizeProfile {
  LogHistogram sizes;
  std::vector<SizeRow> powers;           // one row per power of two that occurs, ascending
  std::vector<SizeRow> classes;          // exact sizes and buckets that occur, by bytes, descending
  std::vector<AlignmentRow> alignments;  // ascending; none asked for comes first
  std::uint64_t odd_alignments = 0;      // asked for, but no power of two
};

class SizesAnalysis final : public Analysis {
 public:
  static constexpr std::size_t exact_limit = 16384;

  SizesAnalysis();
  void consume(std::span<const format::Event> events) override;
  void finish(const format::MergeReport& merged) override;
  [[nodiscard]] const SizeProfile& result() const noexcept { return profile_; }

 private:
  struct Tally {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };

  SizeProfile profile_;
  std::vector<std::uint64_t> exact_;        // counts by size, up to exact_limit
  std::vector<std::uint64_t> large_bytes_;  // by bucket of LogHistogram, sizes above
  std::array<Tally, 64> alignments_{};      // by log2
  Tally unaligned_;
};

}  // namespace heaptape::analyzers
