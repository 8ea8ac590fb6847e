#include <cmath>
#include <limits>
#include <set>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Reduced {
  Ints shape;  // without the reduced dimensions
  Ints kept;   // with them, of size 1
  Reals values;
};

Reduced reduce(const Tensor& x, const Ints& dims, double start, const std::function<double(double, double)>& fold) {
  const std::set<int64_t> reduced(dims.begin(), dims.end());
  Reduced result;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const bool gone = reduced.count(static_cast<int64_t>(d)) > 0;
    result.kept.push_back(gone ? 1 : x.shape[d]);
    if (!gone) {
      result.shape.push_back(x.shape[d]);
    }
  }
  result.values.assign(elementsOf(result.shape), start);
  size_t next = 0;
  forEachIndex(x.shape, [&](const Ints& index) {
    double& to = result.values[positionOf(result.kept, index)];
    to = fold(to, x.values[next++]);
  });
  return result;
}

const std::vector<std::pair<Ints, Ints>> kCases = {{{}, {}},
                                                   {{37}, {0}},
                                                   {{5, 35}, {1}},
                                                   {{5, 35}, {0}},
                                                   {{5, 35}, {0, 1}},
                                                   {{5, 35}, {}},
                                                   {{3, 4, 18}, {1}},
                                                   {{3, 4, 18}, {0, 2}},
                                                   {{3, 1, 18}, {0, 1}},
                                                   {{2, 3, 4, 5}, {1, 3}},
                                                   {{2, 3, 4, 5}, {0, 2}},
                                                   {{0, 4}, {0}},
                                                   {{0, 4}, {1}},
                                                   {{1, 1}, {0, 1}}};

TEST(Sum, EveryChoiceOfDimensions) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    for (const auto& [shape, dims] : kCases) {
      const Tensor x = sample(type, shape, 1, 1, 9);
      const Reduced expected = reduce(x, dims, 0, [](double a, double b) { return a + b; });
      // f32 sums in double: one rounding. f64 in f64: at most one rounding per element, of positive numbers.
      const Tolerance tolerance{(type == DType::kF32 ? 1.01 : 120) * epsilonOf(type), 0};
      expectNear(runOne({"sum", {x}, {{type, expected.shape}}, {{"dims", dims}, {"keep_dims", int64_t{0}}}}),
                 expected.values, tolerance);
      expectNear(runOne({"sum", {x}, {{type, expected.kept}}, {{"dims", dims}, {"keep_dims", int64_t{1}}}}),
                 expected.values, tolerance);
    }
  }
}

TEST(Sum, ManyElementsInF32) {
  // Summed in f32 one after the other, a million tenths is off by 1 %.
  const int64_t n = 1000003;
  const Tensor x = tensor(DType::kF32, {n}, Reals(n, 0.1));
  expectNear(runOne({"sum", {x}, {{DType::kF32, {}}}, {{"dims", Ints{0}}}}), {static_cast<double>(n) * x.values[0]},
             {1.01 * epsilonOf(DType::kF32), 0});
  const Tensor column{DType::kF32, {n, 1}, x.values};
  expectNear(runOne({"sum", {column}, {{DType::kF32, {1}}}, {{"dims", Ints{0}}}}),
             {static_cast<double>(n) * x.values[0]}, {1.01 * epsilonOf(DType::kF32), 0});
}

TEST(Sum, BigIntegers) {
  const Tensor x = tensor(DType::kI64, {3}, {0x1p52, 1, 1});
  expectNear(runOne({"sum", {x}, {{DType::kI64, {}}}, {{"dims", Ints{0}}}}), {0x1p52 + 2}, {});
}

TEST(Mean, DividesByTheGlobalCount) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Tensor x = sample(type, {6, 20}, 2, 1, 2);
    // Half of a batch of 12 rows: the two halves' results add up to the mean.
    const Reduced sums = reduce(x, {0}, 0, [](double a, double b) { return a + b; });
    Reals expected;
    for (const double sum : sums.values) {
      expected.push_back(sum / 12);
    }
    expectNear(runOne({"mean", {x}, {{type, {20}}}, {{"dims", Ints{0}}, {"count", int64_t{12}}}}), expected,
               {16 * epsilonOf(type), 0});
  }
  const Tensor x = sample(DType::kF32, {2}, 1);
  expectError({"mean", {x}, {{DType::kF32, {}}}, {{"dims", Ints{0}}, {"count", int64_t{0}}}}, kInvalid, "count is 0");
}

TEST(Max, EveryChoiceOfDimensions) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    for (const auto& [shape, dims] : kCases) {
      const Tensor x = sample(type, shape, 3, -9, -1);
      const Reduced expected = reduce(x, dims, -kInf, [](double a, double b) { return std::max(a, b); });
      if (elementsOf(shape) > 0 || elementsOf(expected.shape) == 0 || isFloat(type)) {
        expectNear(runOne({"max", {x}, {{type, expected.shape}}, {{"dims", dims}}}), expected.values, {});
      }
    }
  }
}

TEST(Min, EveryChoiceOfDimensions) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    for (const auto& [shape, dims] : kCases) {
      const Tensor x = sample(type, shape, 3, 1, 9);
      const Reduced expected = reduce(x, dims, kInf, [](double a, double b) { return std::min(a, b); });
      if (elementsOf(shape) > 0 || elementsOf(expected.shape) == 0 || isFloat(type)) {
        expectNear(runOne({"min", {x}, {{type, expected.shape}}, {{"dims", dims}}}), expected.values, {});
      }
    }
  }
}

TEST(Extremum, OfBool) {
  const Tensor x = tensor(DType::kBool, {3, 2}, {0, 0, 0, 1, 1, 1});
  expectNear(runOne({"max", {x}, {{DType::kBool, {3}}}, {{"dims", Ints{1}}}}), {0, 1, 1}, {});
  expectNear(runOne({"min", {x}, {{DType::kBool, {3}}}, {{"dims", Ints{1}}}}), {0, 0, 1}, {});
}

TEST(Max, NanWins) {
  for (const size_t at : {0, 1, 20, 39}) {
    Tensor x = sample(DType::kF32, {40}, 4);
    x.values[at] = kNan;
    expectNear(runOne({"max", {x}, {{DType::kF32, {}}}, {{"dims", Ints{0}}}}), {kNan}, {});
    expectNear(runOne({"min", {x}, {{DType::kF32, {}}}, {{"dims", Ints{0}}}}), {kNan}, {});
  }
}

TEST(SumSquares, OfAllElements) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    for (const Ints& shape : std::vector<Ints>{{}, {3, 50}, {0}}) {
      const Tensor x = sample(type, shape, 5);
      double expected = 0;
      for (const double value : x.values) {
        expected += value * value;
      }
      expectNear(runOne({"sum_squares", {x}, {{type, {}}}}), {expected},
                 {(type == DType::kF32 ? 1.01 : 150) * epsilonOf(type), 0});
    }
  }
}

TEST(AllFinite, FindsOneBadElement) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    Tensor x = sample(type, {7, 9}, 6);
    x.values[3] = type == DType::kF32 ? 0x1p127 : 0x1p1023;
    const auto finite = [&] { return runOne({"all_finite", {x}, {{DType::kBool, {}}}}).values[0]; };
    EXPECT_EQ(finite(), 1);
    for (const double bad : {kNan, kInf, -kInf}) {
      for (const size_t at : {0, 31, 62}) {
        const double before = std::exchange(x.values[at], bad);
        EXPECT_EQ(finite(), 0);
        x.values[at] = before;
      }
    }
  }
}

TEST(Reductions, Errors) {
  const Tensor x = sample(DType::kF32, {2, 3}, 1);
  expectError({"sum", {x}, {{DType::kF32, {2}}}, {{"dims", Ints{2}}}}, kInvalid, "dimension 2 of f32 [2,3]");
  expectError({"sum", {x}, {{DType::kF32, {3}}}, {{"dims", Ints{1}}}}, kInvalid,
              "output 0 is f32 [3], it must be f32 [2]");
  expectError({"sum", {x}, {{DType::kF32, {2}}}}, kInvalid, "'dims' is missing");
}

}  // namespace
}  // namespace weft::testing
