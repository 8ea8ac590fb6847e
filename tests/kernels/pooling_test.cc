// Pooling and its gradients against plain loops over the padded image.
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Problem {
  Ints x;  // [n, c, h, w]
  Ints window = {2, 2};
  Ints strides = {2, 2};
  Ints paddings = {0, 0};

  Ints y() const {
    return {x[0], x[1], (x[2] + 2 * paddings[0] - window[0]) / strides[0] + 1,
            (x[3] + 2 * paddings[1] - window[1]) / strides[1] + 1};
  }
  AttributeMap attributes() const { return {{"window", window}, {"strides", strides}, {"paddings", paddings}}; }
  std::string name() const {
    return absl::StrCat(absl::StrJoin(x, "x"), ", window ", absl::StrJoin(window, "x"), ", strides ",
                        absl::StrJoin(strides, ","), ", paddings ", absl::StrJoin(paddings, ","));
  }
};

// Calls visit(position in x) for the elements under the window at `at`, row by row.
template <typename Visit>
void forEachUnder(const Problem& p, const Ints& at, const Visit& visit) {
  forEachIndex(p.window, [&](const Ints& tap) {
    const int64_t row = at[2] * p.strides[0] - p.paddings[0] + tap[0];
    const int64_t column = at[3] * p.strides[1] - p.paddings[1] + tap[1];
    if (row >= 0 && row < p.x[2] && column >= 0 && column < p.x[3]) {
      visit(positionOf(p.x, {at[0], at[1], row, column}));
    }
  });
}

struct Answers {
  Reals y, dx;
};

Answers maxReference(const Problem& p, const Tensor& x, const Tensor& dy) {
  Answers answers{{}, Reals(x.values.size())};
  forEachIndex(p.y(), [&](const Ints& at) {
    int64_t best = -1;
    forEachUnder(p, at, [&](int64_t i) { best = best < 0 || x.values[i] > x.values[best] ? i : best; });
    answers.dx[best] += dy.values[answers.y.size()];
    answers.y.push_back(x.values[best]);
  });
  return answers;
}

Answers avgReference(const Problem& p, const Tensor& x, const Tensor& dy) {
  Answers answers{{}, Reals(x.values.size())};
  const double size = static_cast<double>(p.window[0] * p.window[1]);
  forEachIndex(p.y(), [&](const Ints& at) {
    double sum = 0;
    forEachUnder(p, at, [&](int64_t i) {
      sum += x.values[i];
      answers.dx[i] += dy.values[answers.y.size()] / size;
    });
    answers.y.push_back(sum / size);
  });
  return answers;
}

// Sums of at most 9 values below 1: 16 roundings leave room.
void check(const Problem& p) {
  SCOPED_TRACE(p.name());
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Tensor x = sample(type, p.x, 1);
    const Tensor dy = sample(type, p.y(), 2);
    const Tolerance tolerance{0, 16 * epsilonOf(type)};
    const Answers max = maxReference(p, x, dy);
    expectNear(runOne({"max_pool2d", {x}, {{type, p.y()}}, p.attributes()}), max.y, {});
    expectNear(runOne({"max_pool2d_grad", {x, dy}, {{type, p.x}}, p.attributes()}), max.dx, tolerance);
    const Answers avg = avgReference(p, x, dy);
    expectNear(runOne({"avg_pool2d", {x}, {{type, p.y()}}, p.attributes()}), avg.y, tolerance);
    expectNear(runOne({"avg_pool2d_grad", {dy}, {{type, p.x}}, p.attributes()}), avg.dx, tolerance);
  }
}

TEST(Pooling, Forms) {
  check({{2, 3, 4, 6}});
  check({{2, 3, 5, 7}});                          // a row and a column are left over
  check({{1, 2, 5, 5}, {3, 3}, {1, 1}, {1, 1}});  // windows overlap
  check({{1, 2, 6, 5}, {1, 2}, {3, 1}, {0, 1}});  // rows are skipped
  check({{1, 2, 4, 4}, {3, 2}, {2, 3}, {2, 1}});  // a window sees one row only
  check({{2, 2, 3, 4}, {3, 4}, {1, 1}, {0, 0}});  // the whole image
  check({{0, 2, 4, 4}});
}

TEST(Pooling, TheFirstOfEqualElementsTakesTheGradient) {
  const Problem p{{1, 1, 2, 2}};
  const Tensor x = tensor(DType::kF64, p.x, {1, 3, 3, 3});
  const Tensor dy = tensor(DType::kF64, p.y(), {5});
  expectNear(runOne({"max_pool2d_grad", {x, dy}, {{DType::kF64, p.x}}, p.attributes()}), {0, 5, 0, 0}, {});
}

// A NaN may not be hidden; elements below zero win over the padding.
TEST(Pooling, NaNAndPadding) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Problem p{{1, 1, 2, 2}};
  expectNear(runOne({"max_pool2d", {tensor(DType::kF64, p.x, {1, nan, 3, 2})}, {{DType::kF64, p.y()}}, p.attributes()}),
             {nan}, {});
  const Problem padded{{1, 1, 1, 1}, {3, 3}, {1, 1}, {1, 1}};
  const Tensor x = tensor(DType::kF64, padded.x, {-2});
  expectNear(runOne({"max_pool2d", {x}, {{DType::kF64, padded.y()}}, padded.attributes()}), {-2}, {});
}

TEST(Pooling, Errors) {
  const Problem p{{1, 2, 4, 4}};
  const Tensor x = sample(DType::kF32, p.x, 1);
  const TensorSpec y{DType::kF32, p.y()};
  expectError({"max_pool2d", {x}, {y}, {}}, kInvalid, "'window' is missing");
  expectError({"max_pool2d", {x}, {{DType::kF32, {1, 2, 3, 3}}}, p.attributes()}, kInvalid,
              "the pooled image is f32 [1,2,3,3], it must be f32 [1,2,2,2]");
  const Problem outside{{1, 2, 4, 4}, {2, 2}, {2, 2}, {2, 0}};
  expectError({"avg_pool2d", {x}, {{DType::kF32, outside.y()}}, outside.attributes()}, kInvalid, "does not fit");
  expectError({"avg_pool2d", {sample(DType::kF32, {2, 4, 4}, 1)}, {y}, p.attributes()}, kInvalid, "four dimensions");
  expectError({"max_pool2d_grad", {x, sample(DType::kF32, p.y(), 1)}, {y}, p.attributes()}, kInvalid, "output 0");
}

}  // namespace
}  // namespace weft::testing
