// A histogram of 64-bit values over all magnitudes, in fixed memory (15 KiB).
//
// Values below 64 are counted exactly; above, a bucket is at most 1/32 of its value wide, so a
// quantile is right within 1.6 %. Counts and sums are exact (sums modulo 2^64). Adding costs a
// count of leading zeros and two additions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heaptape::analyzers {

class LogHistogram {
 public:
  static constexpr unsigned sub_bits = 5;
  static constexpr std::size_t bucket_count = (64 - sub_bits + 1) << sub_bits;

  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < (2U << sub_bits)) {
      return static_cast<std::size_t>(value);
    }
    const unsigned shift = 63U - static_cast<unsigned>(std::countl_zero(value)) - sub_bits;
    return (static_cast<std::size_t>(shift) << sub_bits) + static_cast<std::size_t>(value >> shift);
  }
  // Smallest value of a bucket; the largest is that of the next bucket less one.
  [[nodiscard]] static constexpr std::uint64_t lowest(std::size_t bucket) noexcept {
    if (bucket < (2U << sub_bits)) {
      return bucket;
    }
    const std::size_t shift = (bucket >> sub_bits) - 1;
    return (bucket - (shift << sub_bits)) << shift;
  }
  [[nodiscard]] static constexpr std::uint64_t highest(std::size_t bucket) noexcept {
    return bucket + 1 < bucket_count ? lowest(bucket + 1) - 1 : ~std::uint64_t{0};
  }

  constexpr void add(std::uint64_t value, std::uint64_t times = 1) noexcept {
    counts_[bucket_of(value)] += times;
    count_ += times;
    sum_ += value * times;
    largest_ = value > largest_ ? value : largest_;
  }

  [[nodiscard]] constexpr std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] constexpr std::uint64_t sum() const noexcept { return sum_; }
  [[nodiscard]] constexpr std::uint64_t largest() const noexcept { return largest_; }
  [[nodiscard]] constexpr std::uint64_t at(std::size_t bucket) const noexcept { return counts_[bucket]; }

  // Counts by powers of two: row 0 counts the value 0, row k the values of k bits, that is
  // 2^(k-1) <= v < 2^k.
  static constexpr std::size_t row_count = 65;
  [[nodiscard]] constexpr std::array<std::uint64_t, row_count> rows() const noexcept {
    std::array<std::uint64_t, row_count> result{};
    for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
      result[static_cast<std::size_t>(std::bit_width(lowest(bucket)))] += counts_[bucket];
    }
    return result;
  }

  // Counts by steps of decades: rows end at 1, 3, 10, 30, ... (`halves`) or at 10, 100, ... A bucket
  // goes by its lowest value, so a row's end is right within 1/32. Empty rows are left out.
  struct Row {
    std::uint64_t below = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] std::vector<Row> decades(bool halves) const {
    std::vector<Row> result;
    std::uint64_t below = halves ? 1 : 10;
    std::uint64_t factor = halves ? 3 : 10;
    Row row{below, 0};
    for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
      while (lowest(bucket) >= row.below && row.below != ~std::uint64_t{0}) {
        if (row.count != 0) {
          result.push_back(row);
        }
        const bool last = below > ~std::uint64_t{0} / 10;
        below = last ? ~std::uint64_t{0} : factor == 3 ? below * 3 : halves ? below / 3 * 10 : below * 10;
        factor = halves ? 13 - factor : factor;
        row = {below, 0};
      }
      row.count += counts_[bucket];
    }
    if (row.count != 0) {
      result.push_back(row);
    }
    return result;
  }

  // The value below or at which a share q of all values lies: exact below 64, else the middle of
  // its bucket. 0 for an empty histogram.
  [[nodiscard]] constexpr std::uint64_t quantile(double q) const noexcept {
    if (count_ == 0) {
      return 0;
    }
    const double wanted = q * static_cast<double>(count_);
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
      seen += counts_[bucket];
      if (counts_[bucket] != 0 && static_cast<double>(seen) >= wanted) {
        const std::uint64_t middle = lowest(bucket) + (highest(bucket) - lowest(bucket)) / 2;
        return middle < largest_ ? middle : largest_;
      }
    }
    return largest_;
  }

 private:
  std::array<std::uint64_t, bucket_count> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t largest_ = 0;
};

}  // namespace heaptape::analyzers
