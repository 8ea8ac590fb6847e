// Kernels along one dimension against plain loops in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<DType> kFloats = {DType::kF32, DType::kF64};
const std::vector<DType> kNumbers = {DType::kF32, DType::kF64, DType::kI32, DType::kI64};
const std::vector<Ints> kShapes = {{7}, {3, 37}, {2, 5, 18}, {4, 1, 3}};

Ints without(Ints shape, int64_t dim) {
  shape.erase(shape.begin() + dim);
  return shape;
}

// visit(index of an element with `dim` at 0) for every line along `dim`.
void forEachLine(const Ints& shape, int64_t dim, const std::function<void(Ints)>& visit) {
  Ints one = shape;
  one[dim] = 1;
  forEachIndex(one, [&](const Ints& index) { visit(index); });
}

Reals lineOf(const Tensor& x, Ints index, int64_t dim) {
  Reals line;
  for (index[dim] = 0; index[dim] < x.shape[dim]; ++index[dim]) {
    line.push_back(x.values[positionOf(x.shape, index)]);
  }
  return line;
}

// What `f` makes of every line, in the place of the line.
Tensor alongLines(const Tensor& x, int64_t dim, const std::function<Reals(const Reals&)>& f) {
  Tensor y = x;
  forEachLine(x.shape, dim, [&](Ints index) {
    const Reals made = f(lineOf(x, index, dim));
    for (index[dim] = 0; index[dim] < x.shape[dim]; ++index[dim]) {
      y.values[positionOf(x.shape, index)] = made[index[dim]];
    }
  });
  return y;
}

// One number of every line.
Reals reduced(const Tensor& x, int64_t dim, const std::function<double(const Reals&)>& f) {
  Reals y;
  forEachLine(x.shape, dim, [&](const Ints& index) { y.push_back(f(lineOf(x, index, dim))); });
  return y;
}

AttributeMap along(int64_t dim) {
  return {{"dim", dim}};
}

TEST(Cumsum, BothWaysAlongEveryDimension) {
  for (const DType type : kNumbers) {
    for (const Ints& shape : kShapes) {
      for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
        const Tensor x = sample(type, shape, 1, 1, 9);
        for (const int64_t reverse : {0, 1}) {
          const Tensor expected = alongLines(x, dim, [&](Reals line) {
            if (reverse != 0) {
              std::reverse(line.begin(), line.end());
            }
            std::partial_sum(line.begin(), line.end(), line.begin());
            if (reverse != 0) {
              std::reverse(line.begin(), line.end());
            }
            return line;
          });
          // Sums in double: one rounding in f32, one for each element in f64.
          expectNear(runOne({"cumsum", {x}, {x.spec()}, {{"dim", dim}, {"reverse", reverse}}}), expected.values,
                     {(type == DType::kF32 ? 1.01 : 40) * epsilonOf(type), 0});
        }
      }
    }
  }
}

double product(const Reals& line) {
  return std::accumulate(line.begin(), line.end(), 1.0, std::multiplies<>());
}

TEST(Prod, AlongEveryDimension) {
  for (const DType type : kNumbers) {
    for (const Ints& shape : kShapes) {
      for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
        const bool real = type == DType::kF32 || type == DType::kF64;
        const Tensor x = real ? sample(type, shape, 2, 0.5, 1.5) : sample(type, shape, 2, -1, 2);
        expectNear(runOne({"prod", {x}, {{type, without(shape, dim)}}, along(dim)}), reduced(x, dim, product),
                   {(type == DType::kF32 ? 1.01 : 40) * epsilonOf(type), 0});
      }
    }
  }
}

TEST(ProdGrad, IsTheProductOfTheOthers) {
  for (const DType type : kFloats) {
    for (const Ints& shape : kShapes) {
      for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
        Tensor x = sample(type, shape, 3, 0.5, 1.5);
        x.values[0] = 0;
        x.values[x.values.size() / 2] = 0;
        const Tensor dy = sample(type, without(shape, dim), 4);
        size_t next = 0;
        const Tensor expected = alongLines(x, dim, [&](const Reals& line) {
          Reals made;
          for (size_t i = 0; i < line.size(); ++i) {
            Reals others = line;
            others[i] = 1;
            made.push_back(dy.values[next] * product(others));
          }
          ++next;
          return made;
        });
        // The product of what is before is rounded to the type once, the result once more.
        expectNear(runOne({"prod_grad", {x, dy}, {x.spec()}, along(dim)}), expected.values,
                   {(type == DType::kF32 ? 2.1 : 80) * epsilonOf(type), 0});
      }
    }
  }
}

TEST(ArgExtremum, TheFirstOfEqualOnes) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kBool}) {
    for (const Ints& shape : kShapes) {
      for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
        Tensor x = sample(DType::kI32, shape, 5, -3, 3);
        x.type = type;
        for (double& value : x.values) {
          value = type == DType::kBool ? (value > 0 ? 1 : 0) : value;
        }
        const TensorSpec result = {DType::kI32, without(shape, dim)};
        expectNear(runOne({"argmax", {x}, {result}, along(dim)}),
                   reduced(x, dim,
                           [](const Reals& line) {
                             return static_cast<double>(std::max_element(line.begin(), line.end()) - line.begin());
                           }),
                   {});
        expectNear(runOne({"argmin", {x}, {result}, along(dim)}),
                   reduced(x, dim,
                           [](const Reals& line) {
                             return static_cast<double>(std::min_element(line.begin(), line.end()) - line.begin());
                           }),
                   {});
      }
    }
  }
}

TEST(ArgExtremum, TheFirstNan) {
  const Tensor x = tensor(DType::kF32, {5}, {-1, kInf, kNan, kNan, -kInf});
  for (const char* op : {"argmax", "argmin"}) {
    EXPECT_EQ(runOne({op, {x}, {{DType::kI32, {}}}, along(0)}).values, Reals{2});
  }
}

TEST(Sort, StableBothWays) {
  for (const DType type : kNumbers) {
    // Few different values: many are equal.
    Tensor x = sample(DType::kI32, {4, 50}, 6, -4, 4);
    x.type = type;
    for (const int64_t descending : {0, 1}) {
      for (const int64_t count : {1, 7, 50}) {
        Reals values;
        Reals indices;
        for (int64_t r = 0; r < 4; ++r) {
          const Reals row = lineOf(x, {r, 0}, 1);
          std::vector<int> order(50);
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(),
                           [&](int a, int b) { return descending != 0 ? row[a] > row[b] : row[a] < row[b]; });
          for (int64_t i = 0; i < count; ++i) {
            values.push_back(row[order[i]]);
            indices.push_back(order[i]);
          }
        }
        const auto results = run({"sort",
                                  {x},
                                  {{type, {4, count}}, {DType::kI32, {4, count}}},
                                  {{"count", count}, {"descending", descending}}});
        expectNear(results[0], values, {});
        expectNear(results[1], indices, {});
      }
    }
  }
}

TEST(Sort, NanIsGreaterThanAllNumbers) {
  const Tensor x = tensor(DType::kF32, {5}, {kNan, kInf, -kInf, kNan, 0});
  const std::vector<TensorSpec> specs = {x.spec(), {DType::kI32, {5}}};
  const auto up = run({"sort", {x}, specs, {{"count", int64_t{5}}}});
  expectNear(up[0], {-kInf, 0, kInf, kNan, kNan}, {});
  expectNear(up[1], {2, 4, 1, 0, 3}, {});
  const auto down = run({"sort", {x}, specs, {{"count", int64_t{5}}, {"descending", int64_t{1}}}});
  expectNear(down[0], {kNan, kNan, kInf, 0, -kInf}, {});
  expectNear(down[1], {0, 3, 1, 4, 2}, {});
}

TEST(LogSoftmax, ValuesAndGradient) {
  for (const DType type : kFloats) {
    // 700: more than one piece of the kernel's row.
    for (const int64_t width : {1, 37, 700}) {
      const Tensor x = sample(type, {3, width}, 7, -8, 8);
      const Tensor dy = sample(type, {3, width}, 8);
      const Tensor y = alongLines(x, 1, [](Reals line) {
        double sum = 0;
        for (const double value : line) {
          sum += std::exp(value);
        }
        for (double& value : line) {
          value -= std::log(sum);
        }
        return line;
      });
      // Values below 32, rounded a few times.
      expectNear(runOne({"log_softmax", {x}, {x.spec()}}), y.values, {0, 64 * epsilonOf(type)});
      Reals expected;
      for (size_t i = 0; i < y.values.size(); ++i) {
        const Reals row = lineOf(dy, {static_cast<int64_t>(i) / width, 0}, 1);
        expected.push_back(dy.values[i] - std::exp(y.values[i]) * std::accumulate(row.begin(), row.end(), 0.0));
      }
      // exp(y) is wrong by |y| roundings of y, times a sum of at most `width`.
      expectNear(runOne({"log_softmax_grad", {tensor(type, y.shape, y.values), dy}, {x.spec()}}), expected,
                 {0, 64 * epsilonOf(type)});
    }
  }
}

TEST(Along, Errors) {
  const Tensor x = sample(DType::kF32, {2, 3}, 1);
  expectError({"cumsum", {x}, {x.spec()}, along(2)}, kInvalid, "dimension 2 of f32 [2,3]");
  expectError({"cumsum", {x}, {x.spec()}}, kInvalid, "'dim' is missing");
  expectError({"prod", {x}, {{DType::kF32, {3}}}, along(1)}, kInvalid, "output 0 is f32 [3], it must be f32 [2]");
  expectError({"argmax", {x}, {{DType::kI64, {2}}}, along(1)}, kInvalid, "output 0 is i64 [2], it must be i32 [2]");
  expectError({"sort", {x}, {{DType::kF32, {2, 4}}, {DType::kI32, {2, 4}}}, {{"count", int64_t{4}}}}, kInvalid,
              "count is 4, it must lie in 0..3");
}

}  // namespace
}  // namespace weft::testing
