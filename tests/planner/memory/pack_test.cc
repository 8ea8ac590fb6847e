#include "planner/memory/pack.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/memory/pack_instances.h"

namespace weft {
namespace {

PackOptions exactly(int64_t effort = 100'000'000) {
  return {.alignment = 1, .effort = effort};
}

TEST(Pack, SoundOnRandomLifetimes) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    const std::vector<PackItem> items = randomItems(random, 1 + round, 40, 640);
    expectSound(items, pack(items, {.effort = 1'000'000}), kAlignment);
    expectSound(items, pack(items, exactly(1'000'000)), 1);
  }
}

TEST(Pack, ProvedIsOptimal) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    const std::vector<PackItem> items = randomItems(random, 2 + round % 6, 3 + round % 7, 3 + round % 9);
    const Packing packing = pack(items, exactly());
    expectSound(items, packing, 1);
    ASSERT_TRUE(packing.proved()) << "round " << round;
    ASSERT_EQ(packing.bytes, optimumByEnumeration(items, 1)) << "round " << round;
  }
}

TEST(Pack, ProvedIsOptimalWithAlignment) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const std::vector<PackItem> items = randomItems(random, 6, 8, 400);
    const Packing packing = pack(items);
    ASSERT_TRUE(packing.proved());
    ASSERT_EQ(packing.bytes, optimumByEnumeration(items, kAlignment));
  }
}

TEST(Pack, OptimumAboveMaxLive) {
  std::mt19937 random(4);
  int above = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::vector<PackItem> items = fullMemory(random, 8 + round % 13, 5 + round % 2);
    const Packing packing = pack(items, exactly());
    expectSound(items, packing, 1);
    ASSERT_TRUE(packing.proved()) << "round " << round;
    ASSERT_EQ(packing.bytes, optimumByEnumeration(items, 1)) << "round " << round;
    above += packing.bytes > packing.maxLive ? 1 : 0;
  }
  EXPECT_GT(above, 0);  // else no proof needed the search
}

// Full rectangles: no byte to waste, so the greedy orders fail, and the optimum is known.
TEST(Pack, CutRectangles) {
  std::mt19937 random(5);
  int beaten = 0;
  int proved = 0;
  int greedyOptimal = 0;
  constexpr int kInstances = 40;
  for (int round = 0; round < kInstances; ++round) {
    const std::vector<PackItem> items = cutRectangle(random, 60 + 4 * round, 500, 1'000'000, round % 2 == 0);
    const Packing packing = pack(items, exactly());
    expectSound(items, packing, 1);
    EXPECT_EQ(packing.maxLive, 1'000'000);
    beaten += packing.bytes < packing.greedyBytes ? 1 : 0;
    proved += packing.proved() ? 1 : 0;
    greedyOptimal += packing.greedyBytes == 1'000'000 ? 1 : 0;
  }
  RecordProperty("proved", proved);
  RecordProperty("beaten", beaten);
  EXPECT_LT(greedyOptimal, kInstances / 10);  // else the instances are not hard
  EXPECT_GE(beaten, kInstances * 9 / 10);
  EXPECT_GE(proved, kInstances * 9 / 10);
}

TEST(Pack, Deterministic) {
  std::mt19937 random(6);
  for (int round = 0; round < 5; ++round) {
    const std::vector<PackItem> items = cutRectangle(random, 80, 100, 10'000, true);
    const Packing first = pack(items, exactly(3'000'000));
    const Packing second = pack(items, exactly(3'000'000));
    EXPECT_EQ(first.offsets, second.offsets);
    EXPECT_EQ(first.lowerBound, second.lowerBound);
    EXPECT_EQ(first.effort, second.effort);
  }
}

TEST(Pack, EffortIsALimit) {
  std::mt19937 random(7);
  const std::vector<PackItem> items = cutRectangle(random, 150, 1000, 1'000'000, true);
  for (const int64_t effort : {int64_t{0}, int64_t{10'000}, int64_t{1'000'000}}) {
    const Packing packing = pack(items, exactly(effort));
    expectSound(items, packing, 1);
    // A step is counted where it is taken, the limit is looked at once per node and per repair.
    EXPECT_LE(packing.effort, effort + 200'000);
    EXPECT_EQ(packing.effort == 0, effort == 0);
  }
}

TEST(Pack, ComponentsAreIndependent) {
  // A hard part beside a larger easy one: the easy one sets the bound, the hard one need not be optimal.
  std::mt19937 random(8);
  std::vector<PackItem> items = cutRectangle(random, 60, 200, 1'000, true);
  items.push_back({1'000, 1'001, 5'000});
  const Packing packing = pack(items, exactly());
  expectSound(items, packing, 1);
  EXPECT_EQ(packing.bytes, 5'000);
  EXPECT_TRUE(packing.proved());
  EXPECT_EQ(packing.effort, 0);
}

TEST(Pack, ExactWhereLifetimesAreNested) {
  // A stack: everything ends in reverse order of beginning. The bound is reached.
  std::vector<PackItem> items;
  for (int64_t i = 0; i < 8; ++i) {
    items.push_back({i, 20 - i, 100 + 64 * i});
  }
  const Packing packing = pack(items);
  expectSound(items, packing, kAlignment);
  EXPECT_EQ(packing.bytes, packing.maxLive);
  EXPECT_TRUE(packing.proved());
}

TEST(Pack, TenThousandItems) {
  // Dense (all alive together in the middle) and sparse: the placement has a way for each.
  std::mt19937 random(9);
  std::vector<PackItem> dense;
  for (int i = 0; i < 10'000; ++i) {
    dense.push_back({static_cast<int64_t>(random() % 1'000), 1'000 + static_cast<int64_t>(random() % 1'000),
                     1 + static_cast<int64_t>(random() % 1'000)});
  }
  const Packing packed = pack(dense, exactly(0));
  EXPECT_EQ(packed.bytes, packed.maxLive);
  std::vector<PackItem> sparse;
  for (int64_t i = 0; i < 10'000; ++i) {
    const int64_t length = random() % 20 == 0 ? 400 : 1 + static_cast<int64_t>(random() % 20);
    sparse.push_back({i, i + length, 1 + static_cast<int64_t>(random() % 1'000)});
  }
  const Packing packing = pack(sparse, exactly(0));
  EXPECT_LE(packing.bytes, packing.maxLive + packing.maxLive / 10);  // greedy, on lifetimes as of training steps
}

TEST(Pack, Edges) {
  EXPECT_EQ(pack({}).bytes, 0);
  EXPECT_TRUE(pack({}).proved());
  EXPECT_EQ(pack({{0, 1, 0}}).bytes, 0);
  EXPECT_EQ(pack({{3, 3, 10}}).bytes, 0);
  EXPECT_EQ(pack({{0, 1, 1}}).bytes, kAlignment);
  EXPECT_EQ(pack({{0, 1, 1}}, exactly()).bytes, 1);
  EXPECT_EQ(pack({{-5, -1, 3}, {-2, 4, 4}}, exactly()).bytes, 7);
  // Half-open: one ends where the other begins.
  EXPECT_EQ(pack({{0, 3, 64}, {3, 5, 64}}).bytes, 64);
  EXPECT_EQ(pack({{0, 4, 64}, {3, 5, 64}}).bytes, 128);
  // Identical items: one order of them is enough for the search.
  EXPECT_EQ(pack(std::vector<PackItem>(50, {0, 2, 3}), exactly()).bytes, 150);
}

}  // namespace
}  // namespace weft
