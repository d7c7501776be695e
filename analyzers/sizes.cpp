#include "analyzers/sizes.h"

#include <algorithm>
#include <bit>

namespace heaptape::analyzers {

using format::Event;

SizesAnalysis::SizesAnalysis() : exact_(exact_limit + 1), large_bytes_(LogHistogram::bucket_count) {}

void SizesAnalysis::consume(std::span<const Event> events) {
  for (const Event& e : events) {
    if (!acquires(e)) {
      continue;
    }
    profile_.sizes.add(e.size_bytes);
    if (e.size_bytes <= exact_limit) {
      ++exact_[e.size_bytes];
    } else {
      large_bytes_[LogHistogram::bucket_of(e.size_bytes)] += e.size_bytes;
    }
    if (e.alignment == 0) {
      ++unaligned_.count;
      unaligned_.bytes += e.size_bytes;
    } else if (std::has_single_bit(e.alignment)) {
      Tally& tally = alignments_[static_cast<std::size_t>(std::countr_zero(e.alignment))];
      ++tally.count;
      tally.bytes += e.size_bytes;
    } else {
      ++profile_.odd_alignments;
    }
  }
}

void SizesAnalysis::finish(const format::MergeReport& /*merged*/) {
  for (std::size_t size = 0; size < exact_.size(); ++size) {
    if (exact_[size] != 0) {
      profile_.classes.push_back({size, size, exact_[size], size * exact_[size]});
    }
  }
  // exact_limit begins a bucket: that bucket's exact size is counted above, the rest here.
  for (std::size_t bucket = LogHistogram::bucket_of(exact_limit); bucket < large_bytes_.size(); ++bucket) {
    std::uint64_t count = profile_.sizes.at(bucket);
    std::uint64_t low = LogHistogram::lowest(bucket);
    if (low == exact_limit) {
      count -= exact_[exact_limit];
      ++low;
    }
    if (count != 0) {
      profile_.classes.push_back({low, LogHistogram::highest(bucket), count, large_bytes_[bucket]});
    }
  }
  for (const SizeRow& row : profile_.classes) {
    const auto bits = std::bit_width(row.low);
    const std::uint64_t low = bits == 0 ? 0 : std::uint64_t{1} << (bits - 1);
    if (profile_.powers.empty() || profile_.powers.back().low != low) {
      profile_.powers.push_back({low, bits == 0 ? 0 : low + (low - 1), 0, 0});
    }
    profile_.powers.back().count += row.count;
    profile_.powers.back().bytes += row.bytes;
  }
  std::stable_sort(profile_.classes.begin(), profile_.classes.end(),
                   [](const SizeRow& a, const SizeRow& b) { return a.bytes > b.bytes; });
  if (unaligned_.count != 0) {
    profile_.alignments.push_back({0, unaligned_.count, unaligned_.bytes});
  }
  for (std::size_t log2 = 0; log2 < alignments_.size(); ++log2) {
    if (alignments_[log2].count != 0) {
      profile_.alignments.push_back(
          {std::uint64_t{1} << log2, alignments_[log2].count, alignments_[log2].bytes});
    }
  }
}

}  // namespace heaptape::analyzers
