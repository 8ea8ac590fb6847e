#include "passes/plan/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace weft {
namespace {

std::vector<PackItem> randomItems(std::mt19937& random, int count, int steps) {
  std::vector<PackItem> items;
  for (int i = 0; i < count; ++i) {
    const int64_t lower = random() % steps;
    items.push_back({lower, lower + 1 + static_cast<int64_t>(random() % (steps - lower)),
                     static_cast<int64_t>(1 + random() % 640)});
  }
  return items;
}

void expectSound(const std::vector<PackItem>& items, const Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(packing.offsets[i] % kAlignment, 0);
    EXPECT_LE(packing.offsets[i] + items[i].bytes, packing.bytes);
    for (size_t k = 0; k < i; ++k) {
      const bool together = items[i].lower < items[k].upper && items[k].lower < items[i].upper;
      const bool overlap = packing.offsets[i] < packing.offsets[k] + items[k].bytes &&
                           packing.offsets[k] < packing.offsets[i] + items[i].bytes;
      EXPECT_FALSE(together && overlap) << "items " << i << " and " << k;
    }
  }
}

// The least region over all orders of placement, each item at the lowest free offset: some order gives an optimal
// packing.
int64_t bestByAllOrders(const std::vector<PackItem>& items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(items.size(), -1);
    int64_t bytes = 0;
    for (const size_t i : order) {
      int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < items.size(); ++k) {
          if (offsets[k] >= 0 && items[i].lower < items[k].upper && items[k].lower < items[i].upper &&
              offset < offsets[k] + alignUp(items[k].bytes) && offsets[k] < offset + alignUp(items[i].bytes)) {
            offset = offsets[k] + alignUp(items[k].bytes);
            moved = true;
          }
        }
      }
      offsets[i] = offset;
      bytes = std::max(bytes, offset + alignUp(items[i].bytes));
    }
    best = std::min(best, bytes);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Pack, NoOverlapOnRandomLifetimes) {
  std::mt19937 random(1);
  double sum = 0;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<PackItem> items = randomItems(random, 60, 40);
    const Packing packing = pack(items);
    expectSound(items, packing);
    EXPECT_GE(packing.bytes, packing.maxLive);
    sum += static_cast<double>(packing.bytes) / static_cast<double>(packing.maxLive);
  }
  // Random rectangles are harder than training programs; a greedy portfolio stays within a fifth of the bound.
  EXPECT_LT(sum / kRounds, 1.2);
}

TEST(Pack, NearTheOptimumOfSmallSets) {
  std::mt19937 random(2);
  int64_t packed = 0;
  int64_t best = 0;
  for (int round = 0; round < 30; ++round) {
    const std::vector<PackItem> items = randomItems(random, 6, 8);
    packed += pack(items).bytes;
    best += bestByAllOrders(items);
  }
  EXPECT_GE(packed, best);
  EXPECT_LE(packed, best + best / 20);  // greedy: a twentieth over the optimum on average
}

TEST(Pack, ExactWhereLifetimesAreNested) {
  // A stack: everything ends in reverse order of beginning. The bound is reached.
  std::vector<PackItem> items;
  for (int64_t i = 0; i < 8; ++i) {
    items.push_back({i, 20 - i, 100 + 64 * i});
  }
  const Packing packing = pack(items);
  expectSound(items, packing);
  EXPECT_EQ(packing.bytes, packing.maxLive);
}

TEST(Pack, Edges) {
  EXPECT_EQ(pack({}).bytes, 0);
  EXPECT_EQ(pack({{0, 1, 0}}).bytes, 0);
  EXPECT_EQ(pack({{0, 1, 1}}).bytes, kAlignment);
  // Half-open: one ends where the other begins.
  EXPECT_EQ(pack({{0, 3, 64}, {3, 5, 64}}).bytes, 64);
  EXPECT_EQ(pack({{0, 4, 64}, {3, 5, 64}}).bytes, 128);
}

}  // namespace
}  // namespace weft
