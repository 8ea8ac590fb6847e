#include "planner/memory/known_packings.h"

#include <gtest/gtest.h>

namespace weft::testing {
namespace {

constexpr int64_t kEffort = 100'000;

// Items that differ in one number alone are another question.
TEST(KnownPackings, AreThoseOfPack) {
  std::vector<PackItem> items;
  for (int64_t i = 0; i < 20; ++i) {
    items.push_back({i * 7 % 11, i * 7 % 11 + 3 + i % 4, 1000 + i * 777 % 5000});
  }
  KnownPackings known;
  std::vector<std::vector<PackItem>> asked(4, items);
  asked[1][3].bytes += 1 << 20;
  asked[2][3].upper += 5;
  asked[3][3].lower = 0;
  for (int again = 0; again < 2; ++again) {
    for (const std::vector<PackItem>& each : asked) {
      const Packing alone = pack(each, {.effort = kEffort});
      const Packing& made = known.of(each, kEffort);
      EXPECT_EQ(made.offsets, alone.offsets);
      EXPECT_EQ(made.bytes, alone.bytes);
      EXPECT_EQ(made.maxLive, alone.maxLive);
    }
  }
}

}  // namespace
}  // namespace weft::testing
