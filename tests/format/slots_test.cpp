#include "format/slots.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace heaptape::format {
namespace {

TEST(Slots, TheSlotReleasedLastIsAcquiredFirst) {
  SlotAllocator slots;
  EXPECT_EQ(slots.acquire(), SlotIndex{0});
  EXPECT_EQ(slots.acquire(), SlotIndex{1});
  EXPECT_EQ(slots.acquire(), SlotIndex{2});
  slots.release(SlotIndex{0});
  slots.release(SlotIndex{2});
  EXPECT_EQ(slots.acquire(), SlotIndex{2});
  EXPECT_EQ(slots.acquire(), SlotIndex{0});
  EXPECT_EQ(slots.acquire(), SlotIndex{3});
}

TEST(Slots, AreAsManyAsWereEverHeldAtOnceAndNeverHeldTwice) {
  std::mt19937_64 random(1);
  SlotAllocator slots;
  std::set<SlotIndex> held;
  std::size_t peak = 0;
  for (int i = 0; i < 20000; ++i) {
    if (held.empty() || random() % 100 < 52) {
      EXPECT_TRUE(held.insert(slots.acquire()).second) << "step " << i;
    } else {
      auto it = held.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(held.size(), 50)));
      slots.release(*it);
      held.erase(it);
    }
    peak = std::max(peak, held.size());
    ASSERT_EQ(slots.held(), held.size());
    ASSERT_EQ(slots.slots(), peak);
  }
}

}  // namespace
}  // namespace heaptape::format
