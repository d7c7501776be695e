#include "format/object_slots.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace heaptape::format {
namespace {

TEST(ObjectSlots, AreFoundForYoungAndOldObjectsAsInAMap) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    ObjectSlots slots;
    std::unordered_map<std::uint64_t, SlotIndex> model;
    std::vector<std::uint64_t> live;
    std::uint64_t next = 1;
    for (int i = 0; i < 400'000; ++i) {
      if (live.empty() || random() % 100 < 55) {
        next += random() % 5000 == 0 ? random() % 100'000 : 1;  // numbers may be left out
        const SlotIndex slot{static_cast<std::uint32_t>(random() % 1'000'000)};
        slots.born(next, slot);
        model[next] = slot;
        live.push_back(next);
      } else {
        const std::size_t back =
            random() % std::min<std::size_t>(live.size(), random() % 4 == 0 ? live.size() : 50);
        std::swap(live[live.size() - 1 - back], live.back());
        const std::uint64_t object = live.back();
        live.pop_back();
        ASSERT_EQ(slots.release(object), model[object]);
        ASSERT_EQ(slots.release(object), SlotIndex::none) << "released twice";
      }
    }
    for (const std::uint64_t object : live) {
      ASSERT_EQ(slots.release(object), model[object]);
    }
    EXPECT_EQ(slots.release(next + 1), SlotIndex::none);
    EXPECT_EQ(slots.release(0), SlotIndex::none);
  }
}

}  // namespace
}  // namespace heaptape::format
