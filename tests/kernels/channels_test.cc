// Batch norm's kernels against their definitions, with several micro-batches, and what they refuse.
#include <gtest/gtest.h>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF64};

// x [6, 3, 5] in two micro-batches of three rows: the statistic of element i.
size_t statisticOf(size_t i) {
  return i / 15 / 3 * 3 + i / 5 % 3;
}

TEST(Channels, SumAndDotOfEachMicroBatch) {
  for (const DType type : kFloats) {
    const Tensor x = sample(type, {6, 3, 5}, 1, 999, 1001);
    const Tensor z = sample(type, {6, 3, 5}, 2, 999, 1001);
    const Tensor center = sample(type, {2, 3}, 3, 999, 1001);
    Reals sums(6, 0.0);
    Reals dots(6, 0.0);
    for (size_t i = 0; i < x.values.size(); ++i) {
      sums[statisticOf(i)] += x.values[i];
      dots[statisticOf(i)] += x.values[i] * (z.values[i] - center.values[statisticOf(i)]);
    }
    // 15 terms added in double in another order, then one rounding to the type.
    const double sumError = 15 * epsilonOf(DType::kF64);
    const double epsilon = epsilonOf(type) + sumError;
    expectNear(runOne({"channel_sum", {x}, {center.spec()}}), sums, {epsilon, 0});
    // Products up to 2000 may cancel: the error is relative to the sum of their sizes.
    expectNear(runOne({"channel_dot", {x, z, center}, {center.spec()}}), dots, {epsilon, sumError * 15 * 2000});
  }
}

TEST(Channels, AffineOfOneAndTwoTerms) {
  for (const DType type : kFloats) {
    const Tensor x = sample(type, {6, 3, 5}, 1);
    const Tensor z = sample(type, {6, 3, 5}, 2);
    const Tensor a = sample(type, {2, 3}, 3);
    const Tensor b = sample(type, {2, 3}, 4);
    const Tensor c = sample(type, {2, 3}, 5);
    Reals one;
    Reals two;
    for (size_t i = 0; i < x.values.size(); ++i) {
      const size_t s = statisticOf(i);
      one.push_back(x.values[i] * a.values[s] + c.values[s]);
      two.push_back(one.back() + z.values[i] * b.values[s]);
    }
    // Values of order 1, at most four roundings.
    const Tolerance tolerance{0, 8 * epsilonOf(type)};
    expectNear(runOne({"channel_affine", {x, a, c}, {x.spec()}}), one, tolerance);
    expectNear(runOne({"channel_affine", {x, a, z, b, c}, {x.spec()}}), two, tolerance);
  }
}

TEST(Channels, RefuseWhatDoesNotFit) {
  const Tensor x = sample(DType::kF32, {6, 3, 5}, 1);
  const Tensor four = sample(DType::kF32, {4, 3}, 2);
  const Tensor pair = sample(DType::kF32, {2, 3}, 3);
  const auto code = absl::StatusCode::kInvalidArgument;
  expectError({"channel_sum", {x}, {four.spec()}}, code, "a divisor of the rows");
  expectError({"channel_dot", {x, pair, pair}, {pair.spec()}}, code, "f32 [2,3]");
  expectError({"channel_affine", {x, pair}, {x.spec()}}, code, "2 inputs");
}

}  // namespace
}  // namespace weft::testing
