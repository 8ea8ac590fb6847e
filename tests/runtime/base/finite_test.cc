// nan and infinity are found in every float type, and nowhere else.
#include "runtime/base/finite.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft {
namespace {

template <typename T>
void checkType(DType type) {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const std::vector<T> values = {
      0,         std::numeric_limits<T>::max(),          std::numeric_limits<T>::denorm_min(), -kInfinity, 1, -kNan,
      kInfinity, std::numeric_limits<T>::signaling_NaN()};
  const NonFinite found = nonFiniteIn(type, values.data(), static_cast<int64_t>(values.size()));
  EXPECT_EQ(found.nans, 2);
  EXPECT_EQ(found.infinities, 2);
  EXPECT_EQ(found.first, 3);
  EXPECT_EQ(found.firstNan, 5);
  EXPECT_EQ(elementAt(type, values.data(), 3, {2, 4}), "-inf at [0, 3]");
  EXPECT_EQ(elementAt(type, values.data(), 5, {2, 4}), "nan at [1, 1]");
  EXPECT_EQ(elementAt(type, values.data(), 6, {8}), "inf at [6]");
  EXPECT_EQ(elementAt(type, &kInfinity, 0, {}), "inf");
  EXPECT_EQ(nonFiniteIn(type, values.data(), 3).count(), 0);
}

TEST(Finite, WideTypes) {
  checkType<float>(DType::kF32);
  checkType<double>(DType::kF64);
}

TEST(Finite, HalfTypes) {
  // Largest number, infinity, -infinity, nan.
  const std::vector<uint16_t> half = {0x7bff, 0x7c00, 0xfc00, 0x7e01};
  const std::vector<uint16_t> brain = {0x7f7f, 0x7f80, 0xff80, 0x7fc1};
  for (const auto& [type, values] : {std::pair{DType::kF16, half}, std::pair{DType::kBF16, brain}}) {
    const NonFinite found = nonFiniteIn(type, values.data(), 4);
    EXPECT_EQ(found.infinities, 2);
    EXPECT_EQ(found.nans, 1);
    EXPECT_EQ(found.first, 1);
    EXPECT_EQ(elementAt(type, values.data(), 2, {4}), "-inf at [2]");
  }
}

TEST(Finite, IntegersAreFinite) {
  const std::vector<int32_t> bits(4, 0x7fc00000);
  EXPECT_EQ(nonFiniteIn(DType::kI32, bits.data(), 4).count(), 0);
}

TEST(Finite, LossesNameTheirStep) {
  EXPECT_TRUE(checkLoss(1e300, 7).ok());
  for (const auto& [loss, text] :
       {std::pair{-std::numeric_limits<double>::quiet_NaN(), "step 57 is not finite (nan)"},
        std::pair{-std::numeric_limits<double>::infinity(), "step 57 is not finite (-inf)"}}) {
    EXPECT_NE(std::string(checkLoss(loss, 57).message()).find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace weft
