// A segment in ordinary memory, for tests of the ring: what the collector would have made.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "recorder/ring/layout.h"

namespace heaptape::ring {

class RingMemory {
 public:
  explicit RingMemory(std::uint32_t ring_count)
      : bytes_(segment_bytes_for(ring_count)),
        base_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (base_ == MAP_FAILED) {
      std::abort();
    }
    view_ = SegmentView(base_, ring_count);
    Control& c = view_.control();
    c.magic = segment_magic;
    c.version = layout_version;
    c.ring_count = ring_count;
    c.segment_bytes = bytes_;
    c.recording = static_cast<std::uint32_t>(Recording::on);
  }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;
  ~RingMemory() { ::munmap(base_, bytes_); }

  [[nodiscard]] const SegmentView& view() const noexcept { return view_; }
  void offer(std::uint32_t rings) const {
    for (std::uint32_t i = 0; i < rings; ++i) {
      view_.state(i).store(static_cast<std::uint32_t>(RingState::free), std::memory_order_release);
    }
    view_.control().ring_high.store(rings, std::memory_order_release);
  }

 private:
  std::size_t bytes_;
  void* base_;
  SegmentView view_;
};

}  // namespace heaptape::ring
