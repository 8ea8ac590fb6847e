#include "runtime/base/arithmetic.h"

#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(Arithmetic, StaysWithinTheGreatestSize) {
  EXPECT_EQ(boundedSum(2, 3), 5);
  EXPECT_EQ(boundedSum(kMostSize, kMostSize), kMostSize);
  EXPECT_EQ(boundedProduct(int64_t{1} << 40, int64_t{1} << 40), kMostSize);
  EXPECT_EQ(boundedElements(std::vector<int64_t>{3, 0, kMostSize}), 0);
  EXPECT_EQ(boundedElements(std::vector<int64_t>{kMostSize, 4}), kMostSize);
}

TEST(Arithmetic, AlignsUp) {
  EXPECT_EQ(alignUp(0), 0);
  EXPECT_EQ(alignUp(1), kAlignment);
  EXPECT_EQ(alignUp(kAlignment), kAlignment);
  EXPECT_EQ(alignUp(kAlignment + 1), 2 * kAlignment);
  EXPECT_EQ(alignUp(9, 8), 16);
  EXPECT_EQ(alignUp(kMostSize), kMostSize);
  EXPECT_EQ(alignUp(kMostSize - 1), kMostSize);
}

}  // namespace
}  // namespace weft
