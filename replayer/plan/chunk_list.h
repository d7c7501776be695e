// An append-only list whose memory is given back while it is copied out.
//
// Guarantees: elements never move; the list never holds more than its elements plus one chunk, and
// `drain` frees each chunk as soon as the visitor has seen it, so that moving a list into a plan
// needs no second copy of it. Small lists are small (64 elements): there may be 100,000 of them.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace heaptape::replayer {

template <typename T>
class ChunkList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  void push_back(const T& value) {
    if (next_ == end_) {
      grow();
    }
    *next_++ = value;
    ++size_;
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T& back() noexcept { return next_[-1]; }

  // Calls visit(span of elements) -> bool for each chunk in order and frees it; false stops.
  template <typename Visitor>
  bool drain(Visitor visit) {
    bool good = true;
    for (Chunk& chunk : chunks_) {
      const bool last = &chunk == &chunks_.back();
      const std::size_t used = last ? static_cast<std::size_t>(next_ - chunk.memory.get()) : chunk.capacity;
      good = good && visit(std::span<const T>(chunk.memory.get(), used));
      chunk.memory.reset();
    }
    chunks_.clear();
    next_ = end_ = nullptr;
    size_ = 0;
    return good;
  }

 private:
  static constexpr std::size_t smallest = 64;
  static constexpr std::size_t largest = std::size_t{1} << 16;

  // Large chunks are mapped, so that freeing the first of them does give its memory back; malloc
  // would keep it until the last one is freed.
  static constexpr bool is_mapped(std::size_t capacity) {
    return capacity * sizeof(T) >= std::size_t{256} << 10;
  }
  struct Release {
    std::size_t capacity = 0;
    void operator()(T* memory) const noexcept {
      if (is_mapped(capacity)) {
        ::munmap(memory, capacity * sizeof(T));
      } else {
        ::operator delete(memory);
      }
    }
  };
  struct Chunk {
    std::unique_ptr<T, Release> memory;
    std::size_t capacity;
  };

  void grow() {
    const std::size_t capacity = chunks_.empty() ? smallest : std::min(chunks_.back().capacity * 4, largest);
    void* memory = nullptr;
    if (is_mapped(capacity)) {
      memory =
          ::mmap(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) {
        throw std::bad_alloc();
      }
    } else {
      memory = ::operator new(capacity * sizeof(T));
    }
    chunks_.push_back({std::unique_ptr<T, Release>(static_cast<T*>(memory), Release{capacity}), capacity});
    next_ = chunks_.back().memory.get();
    end_ = next_ + capacity;
  }

  std::vector<Chunk> chunks_;
  T* next_ = nullptr;
  T* end_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace heaptape::replayer
