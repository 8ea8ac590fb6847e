// conv2d and its gradients against the sum that defines them, element by element in double.
#include "kernels/describe/convolution.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Problem {
  Ints x;       // [n, groups ci, h, w]
  Ints weight;  // [co, ci, kh, kw]
  Ints strides = {1, 1};
  Ints paddings = {0, 0};
  Ints dilations = {1, 1};

  int64_t groups() const { return x[1] / weight[1]; }
  int64_t places(size_t d) const {
    return (x[2 + d] + 2 * paddings[d] - dilations[d] * (weight[2 + d] - 1) - 1) / strides[d] + 1;
  }
  Ints y() const { return {x[0], weight[0], places(0), places(1)}; }
  AttributeMap attributes() const {
    AttributeMap all = {{"strides", strides}, {"paddings", paddings}};
    if (dilations != Ints{1, 1}) {
      all["dilations"] = dilations;
    }
    return all;
  }
  std::string name() const {
    return absl::StrCat(absl::StrJoin(x, "x"), " with ", absl::StrJoin(weight, "x"), ", strides ",
                        absl::StrJoin(strides, ","), ", paddings ", absl::StrJoin(paddings, ","), ", dilations ",
                        absl::StrJoin(dilations, ","));
  }
};

// Calls visit(position in x, position in weight, position in y) for every product of the sum.
template <typename Visit>
void forEachProduct(const Problem& p, const Visit& visit) {
  const Ints y = p.y();
  forEachIndex(y, [&](const Ints& at) {
    const int64_t group = at[1] / (p.weight[0] / p.groups());
    forEachIndex({p.weight[1], p.weight[2], p.weight[3]}, [&](const Ints& tap) {
      const int64_t row = at[2] * p.strides[0] - p.paddings[0] + tap[1] * p.dilations[0];
      const int64_t column = at[3] * p.strides[1] - p.paddings[1] + tap[2] * p.dilations[1];
      const int64_t channel = group * p.weight[1] + tap[0];
      if (row >= 0 && row < p.x[2] && column >= 0 && column < p.x[3]) {
        visit(positionOf(p.x, {at[0], channel, row, column}), positionOf(p.weight, {at[1], tap[0], tap[1], tap[2]}),
              positionOf(y, at));
      }
    });
  });
}

struct Answers {
  Reals y, dx, dweight;
};

// All three are the same sum of products, read differently.
Answers reference(const Problem& p, const Tensor& x, const Tensor& weight, const Tensor& dy) {
  Answers answers{Reals(elementsOf(p.y())), Reals(x.values.size()), Reals(weight.values.size())};
  forEachProduct(p, [&](int64_t i, int64_t k, int64_t o) {
    answers.y[o] += x.values[i] * weight.values[k];
    answers.dx[i] += dy.values[o] * weight.values[k];
    answers.dweight[k] += dy.values[o] * x.values[i];
  });
  return answers;
}

// Values are in [-1, 1), so a sum of n products is off by at most n roundings of at most n: n^2 epsilon; in practice
// they cancel, and n epsilon times 8 holds. A wrong term is of size 0.1.
Tolerance toleranceOf(DType type, const Problem& p) {
  const Ints y = p.y();
  const int64_t terms =
      std::max({p.x[1] * p.weight[2] * p.weight[3], y[0] * y[2] * y[3], p.weight[0] * p.weight[2] * p.weight[3]});
  return {0, 8 * static_cast<double>(terms) * epsilonOf(type)};
}

struct Variant {
  DType type;
  bool plain;
};
constexpr Variant kVariants[] = {{DType::kF32, false}, {DType::kF32, true}, {DType::kF64, false}};

void check(const Problem& p) {
  SCOPED_TRACE(p.name());
  for (const Variant& variant : kVariants) {
    const Tensor x = sample(variant.type, p.x, 1);
    const Tensor weight = sample(variant.type, p.weight, 2);
    const Tensor dy = sample(variant.type, p.y(), 3);
    const Answers expected = reference(p, x, weight, dy);
    const Tolerance tolerance = toleranceOf(variant.type, p);
    const auto result = [&](const std::string& name, const Tensor& a, const Tensor& b, const Ints& shape) {
      Call call{name, {a, b}, {{variant.type, shape}}, p.attributes()};
      call.plainMatmul = variant.plain;
      return runOne(call);
    };
    expectNear(result("conv2d", x, weight, p.y()), expected.y, tolerance);
    expectNear(result("conv2d_input_grad", dy, weight, p.x), expected.dx, tolerance);
    expectNear(result("conv2d_weight_grad", x, dy, p.weight), expected.dweight, tolerance);
  }
}

TEST(Convolution, SmallForms) {
  check({{2, 3, 5, 6}, {4, 3, 3, 3}});
  check({{2, 3, 5, 6}, {4, 3, 3, 3}, {1, 1}, {1, 1}});
  check({{1, 1, 4, 4}, {1, 1, 1, 1}});
  check({{3, 2, 4, 5}, {3, 2, 4, 5}});
  check({{2, 2, 1, 7}, {3, 2, 1, 3}, {1, 2}, {0, 1}});
}

// Two groups, three of two channels, each channel alone; more and fewer channels out than in.
TEST(Convolution, Groups) {
  check({{2, 4, 5, 6}, {6, 2, 3, 3}});
  check({{2, 6, 5, 6}, {3, 2, 3, 2}, {2, 1}, {1, 0}});
  check({{2, 3, 5, 6}, {3, 1, 3, 3}, {1, 1}, {1, 1}});
  check({{1, 2, 4, 4}, {6, 1, 2, 2}});
}

TEST(Convolution, Dilations) {
  for (const Ints& dilations : std::vector<Ints>{{2, 1}, {1, 3}, {2, 2}}) {
    check({{2, 2, 7, 8}, {3, 2, 3, 2}, {1, 1}, {0, 0}, dilations});
    check({{2, 4, 7, 8}, {4, 2, 3, 3}, {2, 3}, {2, 4}, dilations});
  }
}

// Every small stride and padding: rows that are left over, windows that lie in the padding alone, gaps.
TEST(Convolution, StridesAndPaddings) {
  for (const int64_t vertical : {1, 2, 3}) {
    for (const int64_t horizontal : {1, 2, 4}) {
      for (const int64_t top : {0, 1, 3}) {
        for (const int64_t left : {0, 2}) {
          check({{2, 2, 5, 6}, {3, 2, 3, 2}, {vertical, horizontal}, {top, left}});
        }
      }
    }
  }
}

// The last block is shorter than the others.
TEST(Convolution, SeveralBlocks) {
  const Problem p{{2, 16, 30, 40}, {5, 16, 3, 3}, {1, 1}, {1, 1}};
  const ConvolutionTensors tensors = {{DType::kF32, p.x}, {DType::kF32, p.weight}, {DType::kF32, p.y()}};
  const int64_t rows = convolutionBlock(tensors).rows;
  ASSERT_LT(rows, 30);
  ASSERT_NE(30 % rows, 0);
  check(p);
}

// Small images of several samples make one block, of which the last has fewer samples.
TEST(Convolution, SeveralSamplesInABlock) {
  for (const Problem& p : std::vector<Problem>{{{10, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}},
                                               {{11, 6, 9, 8}, {4, 3, 3, 2}, {2, 1}, {0, 2}},
                                               {{7, 2, 12, 11}, {6, 1, 3, 3}, {1, 2}, {1, 1}, {2, 1}}}) {
    const ConvolutionTensors tensors = {{DType::kF32, p.x}, {DType::kF32, p.weight}, {DType::kF32, p.y()}};
    const ConvolutionBlock block = convolutionBlock(tensors);
    ASSERT_GT(block.samples, 1);
    ASSERT_NE(p.x[0] % block.samples, 0);
    ASSERT_EQ(block.rows, p.y()[2]);
    check(p);
  }
}

// As many samples as have the columns that a product wants, and no more than fit the block size.
TEST(Convolution, BlocksAreEvenAndBounded) {
  const auto samplesOf = [](int64_t samples, int64_t channels, int64_t size) {
    const Problem p{{samples, channels, size, size}, {1, channels, 3, 3}, {1, 1}, {1, 1}};
    return convolutionBlock({{DType::kF32, p.x}, {DType::kF32, p.weight}, {DType::kF32, p.y()}}).samples;
  };
  EXPECT_EQ(samplesOf(16, 1, 4), 16) << "256 places";
  EXPECT_EQ(samplesOf(17, 1, 4), 9) << "9 and 8";
  EXPECT_EQ(samplesOf(16, 64, 4), 8) << "14 would fit, 8 and 8 do as well";
  EXPECT_EQ(samplesOf(16, 1, 16), 1) << "256 places each";
  EXPECT_EQ(samplesOf(0, 1, 4), 1);
}

// One row of the result does not fit the block size.
TEST(Convolution, RowsLargerThanABlock) {
  const Problem p{{1, 20, 3, 800}, {2, 20, 3, 3}, {1, 1}, {1, 1}};
  const ConvolutionTensors tensors = {{DType::kF32, p.x}, {DType::kF32, p.weight}, {DType::kF32, p.y()}};
  ASSERT_EQ(convolutionBlock(tensors).rows, 1);
  ASSERT_GT(convolutionColumnBytes(tensors), kConvolutionBlockBytes);
  check(p);
}

TEST(Convolution, EmptyBatch) {
  check({{0, 2, 4, 4}, {3, 2, 3, 3}});
}

TEST(Convolution, SameBitsEveryTime) {
  const Problem p{{3, 8, 14, 14}, {16, 8, 3, 3}, {1, 1}, {1, 1}};
  const Call call{"conv2d_weight_grad",
                  {sample(DType::kF32, p.x, 1), sample(DType::kF32, p.y(), 2)},
                  {{DType::kF32, p.weight}},
                  p.attributes()};
  expectSame(runOne(call), runOne(call));
}

// What images have before their channels counts as one dimension, to the bit.
TEST(Convolution, SeveralBatchDimensions) {
  const Problem p{{6, 4, 8, 5}, {6, 2, 3, 3}, {1, 2}, {0, 1}};
  const auto apart = [](Tensor image) {
    image.shape.insert(image.shape.begin(), 2);
    image.shape[1] /= 2;
    return image;
  };
  const Tensor x = sample(DType::kF32, p.x, 1);
  const Tensor weight = sample(DType::kF32, p.weight, 2);
  const Tensor y = sample(DType::kF32, p.y(), 3);
  const auto run = [&](const std::string& name, const std::vector<Tensor>& in, const TensorSpec& out) {
    return runOne({name, in, {out}, p.attributes()});
  };
  expectSame(run("conv2d", {apart(x), weight}, apart(y).spec()), apart(run("conv2d", {x, weight}, y.spec())));
  expectSame(run("conv2d_input_grad", {apart(y), weight}, apart(x).spec()),
             apart(run("conv2d_input_grad", {y, weight}, x.spec())));
  expectSame(run("conv2d_weight_grad", {apart(x), apart(y)}, weight.spec()),
             run("conv2d_weight_grad", {x, y}, weight.spec()));
}

// A rank with half of the output channels computes half of the result, to the bit.
TEST(Convolution, PartsOfTheOutputChannels) {
  const Problem whole{{2, 3, 6, 6}, {8, 3, 3, 3}};
  const Tensor x = sample(DType::kF64, whole.x, 1);
  const Tensor weight = sample(DType::kF64, whole.weight, 2);
  const Tensor y = runOne({"conv2d", {x, weight}, {{DType::kF64, whole.y()}}, whole.attributes()});
  Tensor built = y;
  for (const int64_t first : {0, 4}) {
    const Problem half{whole.x, {4, 3, 3, 3}};
    const Tensor rows = part(weight, {first, 0, 0, 0}, half.weight);
    place(runOne({"conv2d", {x, rows}, {{DType::kF64, half.y()}}, half.attributes()}), {0, first, 0, 0}, built);
  }
  expectSame(built, y);
}

TEST(Convolution, Errors) {
  const Problem p{{2, 3, 5, 6}, {4, 3, 3, 3}};
  const Tensor x = sample(DType::kF32, p.x, 1);
  const Tensor weight = sample(DType::kF32, p.weight, 2);
  const TensorSpec y{DType::kF32, p.y()};
  const AttributeMap none;
  expectError({"conv2d", {x, weight}, {y}, none}, kInvalid, "'strides' is missing");
  expectError({"conv2d", {x, weight}, {y}, {{"strides", Ints{0, 1}}, {"paddings", Ints{0, 0}}}}, kInvalid,
              "strides are [0,1]");
  expectError({"conv2d", {x, weight}, {y}, {{"strides", Ints{1, 1}}, {"paddings", Ints{0}}}}, kInvalid,
              "paddings are [0]");
  expectError({"conv2d", {x, weight}, {{DType::kF32, {2, 4, 5, 6}}}, p.attributes()}, kInvalid,
              "f32 [2,3,5,6] and a weight f32 [4,3,3,3] do not give f32 [2,4,5,6]");
  expectError({"conv2d", {x, sample(DType::kF32, {4, 2, 3, 3}, 1)}, {y}, p.attributes()}, kInvalid, "do not give");
  expectError({"conv2d", {x, sample(DType::kF64, p.weight, 1)}, {y}, p.attributes()}, kInvalid, "f64 [4,3,3,3]");
  expectError({"conv2d", {x, sample(DType::kF32, {4, 3, 9}, 1)}, {y}, p.attributes()}, kInvalid, "four dimensions");
  expectError({"conv2d", {sample(DType::kI32, p.x, 1), sample(DType::kI32, p.weight, 1)}, {y}, p.attributes()},
              kInvalid, "i32");
  // A kernel larger than the image.
  expectError({"conv2d", {x, sample(DType::kF32, {4, 3, 7, 3}, 1)}, {y}, p.attributes()}, kInvalid, "do not give");
}

}  // namespace
}  // namespace weft::testing
