// Bytes become calls on an arena that a model watches; every invariant is checked after each.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/replayer/heaps_arena_model.h"

using heaptape::heaps::ArenaModel;
using heaptape::heaps::Locking;

namespace {

// Takes the input byte by byte; zeros once it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool any() const { return at_ != end_; }
  unsigned byte() { return any() ? *at_++ : 0; }
  // Small numbers and large ones are equally likely.
  std::size_t number() {
    const unsigned bits = byte() % 65;
    std::size_t value = 0;
    for (unsigned i = 0; i < bits; i += 8) value = value << 8U | byte();
    return bits == 0 ? 0 : value & (~std::size_t{0} >> (64 - bits));
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::size_t bytes = 1024 + input.byte() * 512;
  ArenaModel model(bytes, input.byte() % 64, Locking::none);
  if (model.arena() == nullptr) return 0;
  for (int calls = 0; calls < 500 && input.any(); ++calls) {
    switch (const unsigned call = input.byte() % 6; call) {
      case 0:
        model.allocate(input.number());
        break;
      case 1:
        model.allocate_aligned(input.number(), input.number());
        break;
      case 2:
        model.allocate_zeroed(input.number());
        break;
      default:
        if (model.blocks() == 0) {
          model.allocate(input.byte());
        } else if (call == 3) {
          model.reallocate(input.number(), input.number());
        } else {
          model.release(input.number());
        }
    }
    model.check();
    if (!model.complaint().empty()) {
      std::fprintf(stderr, "arena: %s\n", model.complaint().c_str());
      std::abort();
    }
  }
  model.check_statistics();
  model.release_all();
  model.check();
  if (!model.complaint().empty() || model.arena()->statistics().free_blocks != 1) std::abort();
  return 0;
}
