// The streams that may go, the one with the earliest head first: a binary heap.
//
// Guarantees: equal stamps come in the order of the streams' numbers, so that a merge repeats
// exactly. Not thread-safe; internal to the merge.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace heaptape::format {

class MergeHeads {
 public:
  struct Head {
    std::uint64_t stamp;
    std::uint32_t stream;
    friend bool operator<(const Head& a, const Head& b) noexcept {
      return a.stamp < b.stamp || (a.stamp == b.stamp && a.stream < b.stream);
    }
  };

  [[nodiscard]] bool empty() const noexcept { return heads_.empty(); }
  [[nodiscard]] const Head& top() const noexcept { return heads_.front(); }
  // The earliest but one; later than everything if there is none.
  [[nodiscard]] Head second() const noexcept {
    if (heads_.size() < 2) {
      return {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint32_t>::max()};
    }
    return heads_.size() == 2 ? heads_[1] : std::min(heads_[1], heads_[2]);
  }

  void push(Head head) {
    heads_.push_back(head);
    std::size_t i = heads_.size() - 1;
    for (; i != 0 && head < heads_[(i - 1) / 2]; i = (i - 1) / 2) {
      heads_[i] = heads_[(i - 1) / 2];
    }
    heads_[i] = head;
  }
  void replace_top(Head head) noexcept {
    std::size_t i = 0;
    for (;;) {
      std::size_t child = 2 * i + 1;
      if (child >= heads_.size()) {
        break;
      }
      if (child + 1 < heads_.size() && heads_[child + 1] < heads_[child]) {
        ++child;
      }
      if (!(heads_[child] < head)) {
        break;
      }
      heads_[i] = heads_[child];
      i = child;
    }
    heads_[i] = head;
  }
  void pop() noexcept {
    const Head last = heads_.back();
    heads_.pop_back();
    if (!heads_.empty()) {
      replace_top(last);
    }
  }

 private:
  std::vector<Head> heads_;
};

}  // namespace heaptape::format
