// Random event streams into the plan compiler: whatever the tape says, either an error or a plan
// that passes the proof. Bytes choose operations on a small set of objects, mostly valid ones.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "replayer/plan/compile.h"
#include "replayer/plan/verify.h"

namespace {

using heaptape::format::Event;
using heaptape::format::Kind;
using heaptape::format::ObjectId;
using heaptape::format::SlotIndex;
using heaptape::format::ThreadIndex;
using heaptape::replayer::Order;

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}
  [[nodiscard]] bool empty() const { return next_ == end_; }
  std::uint8_t take() { return empty() ? std::uint8_t{0} : *next_++; }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

constexpr Kind kinds[] = {Kind::malloc,         Kind::free,           Kind::realloc, Kind::calloc,
                          Kind::posix_memalign, Kind::operator_new,   Kind::free,    Kind::valloc,
                          Kind::malloc_trim,    Kind::operator_delete};

std::vector<Event> events_from(Bytes bytes) {
  std::vector<Event> events;
  std::vector<SlotIndex> live;
  std::vector<SlotIndex> free_slots;
  std::uint32_t slots = 0;
  while (!bytes.empty()) {
    const std::uint8_t what = bytes.take();
    Event e;
    e.index = events.size();
    e.kind = kinds[what % std::size(kinds)];
    e.thread = ThreadIndex{what / 32U};
    const std::uint8_t size = bytes.take();
    e.size_bytes = size < 250 ? size * 37U : std::uint64_t{1} << (size - 192);
    if (size % 7 == 0) {
      e.flags = static_cast<std::uint16_t>(bytes.take() | (bytes.take() & 1) << 8);
    }
    if (e.kind == Kind::posix_memalign) {
      e.alignment = std::uint64_t{bytes.take()} << (bytes.take() % 64);
    }
    const bool releases = is_release(e.kind) || is_realloc(e.kind);
    if (releases && !live.empty()) {
      const std::size_t victim = bytes.take() % live.size();
      e.released = ObjectId{1};
      e.released_slot = live[victim];
      if (is_release(e.kind)) {
        free_slots.push_back(live[victim]);
        live[victim] = live.back();
        live.pop_back();
      } else {
        e.slot = e.released_slot;
      }
    } else if (!releases && !e.has(heaptape::format::EventFlag::failed)) {
      if (free_slots.empty()) {
        free_slots.push_back(SlotIndex{slots++});
      }
      e.slot = free_slots.back();
      free_slots.pop_back();
      live.push_back(e.slot);
    }
    if (what == 255) {  // nonsense now and then
      e.slot = SlotIndex{bytes.take()};
      e.thread = ThreadIndex{std::uint32_t{bytes.take()} << 14};
    }
    events.push_back(e);
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<Event> events = events_from(Bytes(data, size));
  for (const Order order : {Order::serial, Order::total, Order::deps}) {
    heaptape::format::VectorCursor cursor(events);
    const auto plan =
        heaptape::replayer::compile_plan(cursor, {.order = order, .exact_instants = 4, .cheap_instants = 8});
    if (!plan) {
      continue;
    }
    if (const auto sound = heaptape::replayer::verify_plan(*plan); !sound) {
      std::fprintf(stderr, "%s\n", sound.error().message().c_str());
      std::abort();
    }
  }
  return 0;
}
