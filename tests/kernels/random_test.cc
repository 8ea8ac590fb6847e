#include <cmath>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

AttributeMap dropoutAttributes(double rate, const Ints& global, int64_t key = 7) {
  return {{"rate", rate}, {"seed", int64_t{42}}, {"key", key}, {"global_shape", global}};
}

Tensor dropout(const Tensor& x, double step, const AttributeMap& attributes, const Ints& origins,
               DType stepType = DType::kI32) {
  return runOne({"dropout", {x, scalar(stepType, step)}, {x.spec()}, attributes, origins});
}

TEST(Dropout, KeepsAndScales) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Tensor x = tensor(type, {100, 100}, Reals(10000, 3.0));
    const Tensor y = dropout(x, 1, dropoutAttributes(0.25, {100, 100}), {0, 0});
    int64_t kept = 0;
    for (const double value : y.values) {
      ASSERT_TRUE(value == 0 || std::abs(value - 4) < 1e-6) << value;
      kept += value != 0 ? 1 : 0;
    }
    // Binomial: 7500 with a standard deviation of 43; five of them.
    EXPECT_NEAR(static_cast<double>(kept), 7500, 5 * 43.3);
    expectSame(dropout(x, 1, dropoutAttributes(0, {100, 100}), {0, 0}), x);
  }
}

TEST(Dropout, DependsOnStepAndKey) {
  const Tensor x = tensor(DType::kF32, {64}, Reals(64, 1.0));
  const Tensor y = dropout(x, 1, dropoutAttributes(0.5, {64}), {0});
  EXPECT_NE(dropout(x, 2, dropoutAttributes(0.5, {64}), {0}).values, y.values);
  EXPECT_NE(dropout(x, 1, dropoutAttributes(0.5, {64}, 8), {0}).values, y.values);
  expectSame(dropout(x, 1, dropoutAttributes(0.5, {64}), {0}), y);
  expectSame(dropout(x, 1, dropoutAttributes(0.5, {64}), {0}, DType::kI64), y);
}

struct Cut {
  Ints origins, size;
};

// Halves, single columns and rows, odd micro-batches, all of them; also rows longer than the kernel's buffer.
TEST(Dropout, MaskDoesNotDependOnTheSplit) {
  const Ints global = {6, 3, 70};
  const Tensor x = sample(DType::kF32, global, 1, 1, 2);
  const AttributeMap attributes = dropoutAttributes(0.4, global);
  const Tensor whole = dropout(x, 5, attributes, {0, 0, 0});
  const std::vector<Cut> cuts = {{{0, 0, 0}, {3, 3, 70}}, {{3, 0, 0}, {3, 3, 70}}, {{0, 0, 35}, {6, 3, 35}},
                                 {{0, 0, 13}, {6, 3, 1}}, {{2, 1, 0}, {1, 1, 70}}, {{1, 1, 3}, {4, 2, 65}},
                                 {{5, 2, 69}, {1, 1, 1}}, {{0, 1, 0}, {6, 1, 70}}, {{0, 2, 7}, {6, 1, 1}}};
  for (const Cut& cut : cuts) {
    const Tensor microBatch = part(x, cut.origins, cut.size);
    expectSame(dropout(microBatch, 5, attributes, cut.origins), part(whole, cut.origins, cut.size));
  }
  const Tensor long1 = sample(DType::kF32, {2000}, 2, 1, 2);
  const Tensor all = dropout(long1, 5, dropoutAttributes(0.4, {2000}), {0});
  expectSame(dropout(part(long1, {333}, {1501}), 5, dropoutAttributes(0.4, {2000}), {333}), part(all, {333}, {1501}));
}

AttributeMap randomAttributes(const std::string& distribution, double a, double b, const Ints& global) {
  return {{"distribution", distribution}, {"a", a}, {"b", b}, {"seed", int64_t{42}}, {"key", int64_t{3}},
          {"global_shape", global}};
}

TEST(Random, DoesNotDependOnTheSplit) {
  for (const char* distribution : {"normal", "uniform"}) {
    const Ints global = {6, 10};
    const AttributeMap attributes = randomAttributes(distribution, 0.5, 2, global);
    const Tensor whole = runOne({"random", {}, {{DType::kF32, global}}, attributes, {0, 0}});
    for (const Cut& cut : std::vector<Cut>{{{3, 0}, {3, 10}}, {{0, 5}, {6, 5}}, {{2, 9}, {4, 1}}, {{5, 3}, {1, 4}}}) {
      expectSame(runOne({"random", {}, {{DType::kF32, cut.size}}, attributes, cut.origins}),
                 part(whole, cut.origins, cut.size));
    }
    // f32 and f64 are the same numbers, rounded once.
    const Tensor wide = runOne({"random", {}, {{DType::kF64, global}}, attributes, {0, 0}});
    expectNear(whole, wide.values, {epsilonOf(DType::kF32), 0});
  }
  EXPECT_EQ(runOne({"random", {}, {{DType::kF32, {}}}, randomAttributes("uniform", 0, 1, {}), {}}).values.size(), 1U);
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments momentsOf(const Reals& x) {
  Moments m;
  for (const double value : x) {
    m.mean += value / static_cast<double>(x.size());
  }
  for (const double value : x) {
    m.variance += (value - m.mean) * (value - m.mean) / static_cast<double>(x.size());
  }
  return m;
}

TEST(Random, HasTheDistribution) {
  const Ints shape = {10000};
  // Five standard deviations of the mean (1 / 100) and of the variance (sqrt(2) / 100) of 10000 normal numbers.
  const Moments normal =
      momentsOf(runOne({"random", {}, {{DType::kF32, shape}}, randomAttributes("normal", 1, 2, shape), {0}}).values);
  EXPECT_NEAR(normal.mean, 1, 2 * 0.05);
  EXPECT_NEAR(normal.variance, 4, 4 * 0.0708);
  const Tensor uniform = runOne({"random", {}, {{DType::kF32, shape}}, randomAttributes("uniform", -1, 2, shape), {0}});
  for (const double value : uniform.values) {
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 2);
  }
  // Width 3: variance 9 / 12; the same five deviations.
  EXPECT_NEAR(momentsOf(uniform.values).mean, 0.5, 0.866 * 0.05);
  EXPECT_NEAR(momentsOf(uniform.values).variance, 0.75, 0.75 * 0.0708);
}

TEST(Random, Errors) {
  const Tensor x = sample(DType::kF32, {4}, 1);
  const Tensor step = scalar(DType::kI32, 1);
  expectError({"dropout", {x, step}, {x.spec()}, dropoutAttributes(1.0, {4}), {0}}, kInvalid, "rate is 1");
  expectError({"dropout", {x, step}, {x.spec()}, dropoutAttributes(0.5, {4}), {}}, kInvalid, "1 scalars");
  expectError({"dropout", {x, step}, {x.spec()}, dropoutAttributes(0.5, {2, 2}), {0}}, kInvalid, "[2,2]");
  expectError({"dropout", {x, x}, {x.spec()}, dropoutAttributes(0.5, {4}), {0}}, kInvalid, "input 1 is f32 [4]");
  expectError({"random", {}, {x.spec()}, randomAttributes("cauchy", 0, 1, {4}), {0}}, kInvalid, "'cauchy'");
}

}  // namespace
}  // namespace weft::testing
