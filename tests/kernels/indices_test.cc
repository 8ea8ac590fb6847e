#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kRange = absl::StatusCode::kOutOfRange;
constexpr int64_t kIgnore = -100;

struct Types {
  DType value, id;
};
const std::vector<Types> kTypes = {
    {DType::kF32, DType::kI32}, {DType::kF32, DType::kI64}, {DType::kF64, DType::kI32}, {DType::kF64, DType::kI64}};

// Adds `x` to `sum`, element by element.
void addTo(Tensor& sum, const Tensor& x) {
  for (size_t i = 0; i < sum.values.size(); ++i) {
    sum.values[i] += x.values[i];
  }
}

TEST(Embedding, TakesRowsWholeAndSplit) {
  for (const Types& t : kTypes) {
    const Tensor table = sample(t.value, {10, 5}, 1);
    const Tensor ids = tensor(t.id, {2, 4}, {0, 9, 3, 3, 5, 4, 0, 7});
    Tensor expected{t.value, {2, 4, 5}, {}};
    for (const double id : ids.values) {
      for (int64_t c = 0; c < 5; ++c) {
        expected.values.push_back(table.values[static_cast<int64_t>(id) * 5 + c]);
      }
    }
    const AttributeMap attributes = {{"rows", int64_t{10}}};
    expectSame(runOne({"embedding", {table, ids}, {expected.spec()}, attributes, {0}}), expected);
    // Two halves of the table: the sum of their results.
    Tensor sum{t.value, {2, 4, 5}, Reals(40, 0.0)};
    for (const int64_t origin : {0, 5}) {
      addTo(sum,
            runOne({"embedding", {part(table, {origin, 0}, {5, 5}), ids}, {expected.spec()}, attributes, {origin}}));
    }
    expectSame(sum, expected);
  }
}

TEST(Embedding, IdsOutsideAreAnErrorOfTheData) {
  const Tensor table = sample(DType::kF32, {5, 2}, 1);
  for (const double bad : {-1, 10}) {
    // Outside the whole table, not only outside this half.
    const Call call{"embedding",
                    {table, tensor(DType::kI32, {2}, {7, bad})},
                    {{DType::kF32, {2, 2}}},
                    {{"rows", int64_t{10}}},
                    {5}};
    expectError(call, kRange, "id " + std::to_string(static_cast<int>(bad)) + " at element 1 is outside 0..9");
  }
}

TEST(EmbeddingGrad, AddsRowsUp) {
  for (const Types& t : kTypes) {
    const Tensor ids = tensor(t.id, {2, 3}, {0, 7, 7, 2, 0, 7});
    const Tensor dy = sample(t.value, {2, 3, 4}, 2);
    Tensor expected{t.value, {8, 4}, Reals(32, 0.0)};
    for (size_t i = 0; i < 6; ++i) {
      for (size_t c = 0; c < 4; ++c) {
        expected.values[static_cast<size_t>(ids.values[i]) * 4 + c] += dy.values[i * 4 + c];
      }
    }
    // At most three values below 1 are added.
    const Tolerance tolerance{0, 4 * epsilonOf(t.value)};
    expectNear(runOne({"embedding_grad", {ids, dy}, {expected.spec()}, {{"rows", int64_t{8}}}, {0}}), expected.values,
               tolerance);
    for (const int64_t origin : {0, 4}) {
      const Tensor half = runOne({"embedding_grad", {ids, dy}, {{t.value, {4, 4}}}, {{"rows", int64_t{8}}}, {origin}});
      expectNear(half, part(expected, {origin, 0}, {4, 4}).values, tolerance);
    }
  }
}

struct Losses {
  Reals loss, lse, gradient;
};

Losses lossReference(const Tensor& x, const Tensor& labels, const Reals& dloss) {
  const int64_t width = x.shape.back();
  Losses result{{}, {}, Reals(x.values.size(), 0.0)};
  for (size_t r = 0; r < labels.values.size(); ++r) {
    const double* row = x.values.data() + r * width;
    const double most = *std::max_element(row, row + width);
    double total = 0;
    for (int64_t i = 0; i < width; ++i) {
      total += std::exp(row[i] - most);
    }
    const auto label = static_cast<int64_t>(labels.values[r]);
    result.lse.push_back(most + std::log(total));
    result.loss.push_back(label == kIgnore ? 0 : result.lse.back() - row[label]);
    for (int64_t i = 0; i < width && label != kIgnore; ++i) {
      result.gradient[r * width + i] = (std::exp(row[i] - result.lse.back()) - (i == label ? 1 : 0)) * dloss[r];
    }
  }
  return result;
}

struct LossCase {
  Tensor logits, labels, dloss;
};

// 700 classes: more than one micro-batch of the kernel's row.
LossCase lossCase(const Types& t, int64_t classes) {
  const double last = static_cast<double>(classes - 1);
  return {sample(t.value, {2, 3, classes}, 3, -8, 8), tensor(t.id, {2, 3}, {0, last, kIgnore, 1, 0, kIgnore}),
          sample(t.value, {2, 3}, 4)};
}

TEST(SoftmaxCrossEntropy, LossAndLse) {
  for (const Types& t : kTypes) {
    for (const int64_t classes : {2, 37, 700}) {
      const LossCase c = lossCase(t, classes);
      const Losses expected = lossReference(c.logits, c.labels, c.dloss.values);
      const TensorSpec leading{t.value, {2, 3}};
      const auto results = run({"softmax_cross_entropy",
                                {c.logits, c.labels},
                                {leading, leading},
                                {{"ignore_index", kIgnore}, {"rows", classes}}});
      // Exponents below 16 are rounded once; results below 32 are rounded once.
      const Tolerance tolerance{0, 32 * epsilonOf(t.value)};
      expectNear(results[0], expected.loss, tolerance);
      expectNear(results[1], expected.lse, tolerance);
    }
  }
}

TEST(SoftmaxCrossEntropy, PaddedClassesDoNotCount) {
  const double kOut = -std::numeric_limits<double>::infinity();
  const Tensor logits = tensor(DType::kF32, {1, 4}, {1, 1, kOut, kOut});
  const Tensor label = tensor(DType::kI32, {1}, {1});
  const TensorSpec row{DType::kF32, {1}};
  const AttributeMap attributes = {{"ignore_index", kIgnore}, {"rows", int64_t{2}}};
  const auto results = run({"softmax_cross_entropy", {logits, label}, {row, row}, attributes});
  expectNear(results[0], {std::log(2.0)}, {epsilonOf(DType::kF32), 0});
  expectNear(runOne({"softmax_cross_entropy_grad",
                     {logits, label, results[1], tensor(DType::kF32, {1}, {1})},
                     {logits.spec()},
                     {{"ignore_index", kIgnore}},
                     {0}}),
             {0.5, -0.5, 0, 0}, {0, 2 * epsilonOf(DType::kF32)});
}

TEST(SoftmaxCrossEntropy, LabelsOutsideAreAnErrorOfTheData) {
  const TensorSpec row{DType::kF32, {2}};
  const AttributeMap attributes = {{"ignore_index", kIgnore}, {"rows", int64_t{3}}};
  for (const double bad : {-1, 3}) {
    const Call call{"softmax_cross_entropy",
                    {sample(DType::kF32, {2, 3}, 1), tensor(DType::kI64, {2}, {kIgnore, bad})},
                    {row, row},
                    attributes};
    expectError(call, kRange, "label " + std::to_string(static_cast<int>(bad)) + " at element 1 is outside 0..2");
  }
  const Tensor half = sample(DType::kF32, {2, 2}, 1);
  expectError({"softmax_cross_entropy", {half, tensor(DType::kI64, {2}, {0, 0})}, {row, row}, attributes}, kInvalid,
              "all 3 classes, it was given 2");
}

TEST(SoftmaxCrossEntropyGrad, WholeAndSplit) {
  for (const Types& t : kTypes) {
    for (const int64_t classes : {2, 74}) {
      const LossCase c = lossCase(t, classes);
      const Losses expected = lossReference(c.logits, c.labels, c.dloss.values);
      const Tensor lse = tensor(t.value, {2, 3}, expected.lse);
      const AttributeMap attributes = {{"ignore_index", kIgnore}};
      // lse below 16 is rounded once: that much relative error in a probability of at most 1.
      const Tolerance tolerance{0, 32 * epsilonOf(t.value)};
      const Tensor whole = runOne(
          {"softmax_cross_entropy_grad", {c.logits, c.labels, lse, c.dloss}, {c.logits.spec()}, attributes, {0}});
      expectNear(whole, expected.gradient, tolerance);
      for (const int64_t origin : {int64_t{0}, classes / 2}) {
        const Ints size = {2, 3, classes / 2};
        const Tensor half = part(c.logits, {0, 0, origin}, size);
        const Tensor result =
            runOne({"softmax_cross_entropy_grad", {half, c.labels, lse, c.dloss}, {half.spec()}, attributes, {origin}});
        expectNear(result, part(whole, {0, 0, origin}, size).values, {0, 2 * epsilonOf(t.value)});
      }
    }
  }
}

TEST(Pick, TakesOneOfARow) {
  for (const Types& t : kTypes) {
    const Tensor x = sample(t.value, {3, 8}, 5);
    const Tensor labels = tensor(t.id, {3}, {0, 7, kIgnore});
    const Reals expected = {x.values[0], x.values[15], 0};
    expectNear(runOne({"pick", {x, labels}, {{t.value, {3}}}, {}, {0}}), expected, {});
    Tensor sum{t.value, {3}, Reals(3, 0.0)};
    for (const int64_t origin : {0, 4}) {
      addTo(sum, runOne({"pick", {part(x, {0, origin}, {3, 4}), labels}, {{t.value, {3}}}, {}, {origin}}));
    }
    expectNear(sum, expected, {});
  }
}

TEST(PickGrad, PutsItBack) {
  for (const Types& t : kTypes) {
    const Tensor labels = tensor(t.id, {3}, {0, 7, kIgnore});
    const Tensor d = sample(t.value, {3}, 6);
    Tensor expected{t.value, {3, 8}, Reals(24, 0.0)};
    expected.values[0] = d.values[0];
    expected.values[15] = d.values[1];
    expectSame(runOne({"pick_grad", {labels, d}, {expected.spec()}, {}, {0}}), expected);
    for (const int64_t origin : {0, 4}) {
      expectSame(runOne({"pick_grad", {labels, d}, {{t.value, {3, 4}}}, {}, {origin}}),
                 part(expected, {0, origin}, {3, 4}));
    }
  }
}

// Along every dimension, whole and in two halves of the dimension that is looked up in.
TEST(Gather, WholeAndSplit) {
  const std::vector<DType> types = {DType::kF32, DType::kF64, DType::kI32, DType::kI64};
  for (const DType type : types) {
    for (const int64_t dim : {0, 1, 2}) {
      const Tensor x = sample(type, {4, 4, 4}, 7, -9, 9);
      Ints shape = {4, 4, 4};
      shape[dim] = 3;
      const Tensor index = sample(DType::kI32, shape, 8, 0, 4);
      Tensor expected{type, shape, {}};
      size_t next = 0;
      forEachIndex(shape, [&](Ints at) {
        at[dim] = static_cast<int64_t>(index.values[next++]);
        expected.values.push_back(x.values[positionOf(x.shape, at)]);
      });
      const AttributeMap attributes = {{"dim", dim}, {"rows", int64_t{4}}};
      expectSame(runOne({"gather", {x, index}, {expected.spec()}, attributes, {0}}), expected);
      Tensor sum{type, shape, Reals(expected.values.size(), 0.0)};
      for (const int64_t origin : {0, 2}) {
        Ints offsets = {0, 0, 0};
        Ints size = {4, 4, 4};
        offsets[dim] = origin;
        size[dim] = 2;
        addTo(sum, runOne({"gather", {part(x, offsets, size), index}, {expected.spec()}, attributes, {origin}}));
      }
      expectSame(sum, expected);
    }
  }
}

TEST(ScatterAdd, WholeAndSplit) {
  for (const Types& t : kTypes) {
    for (const int64_t dim : {0, 1}) {
      const Tensor index = sample(t.id, {6, 6}, 9, 0, 4);
      const Tensor updates = sample(t.value, {6, 6}, 10);
      Ints shape = {6, 6};
      shape[dim] = 4;
      Tensor expected{t.value, shape, Reals(24, 0.0)};
      size_t next = 0;
      forEachIndex({6, 6}, [&](Ints at) {
        at[dim] = static_cast<int64_t>(index.values[next]);
        expected.values[positionOf(shape, at)] += updates.values[next++];
      });
      const AttributeMap attributes = {{"dim", dim}, {"rows", int64_t{4}}};
      // At most six values below 1 are added.
      const Tolerance tolerance{0, 16 * epsilonOf(t.value)};
      expectNear(runOne({"scatter_add", {index, updates}, {expected.spec()}, attributes, {0}}), expected.values,
                 tolerance);
      Ints size = shape;
      size[dim] = 2;
      for (const int64_t origin : {0, 2}) {
        Ints offsets = {0, 0};
        offsets[dim] = origin;
        expectNear(runOne({"scatter_add", {index, updates}, {{t.value, size}}, attributes, {origin}}),
                   part(expected, offsets, size).values, tolerance);
      }
    }
  }
}

TEST(Gather, IndicesOutsideAreAnErrorOfTheData) {
  const Tensor x = sample(DType::kF32, {5}, 1);
  const AttributeMap attributes = {{"dim", int64_t{0}}, {"rows", int64_t{10}}};
  for (const double bad : {-1, 10}) {
    const Tensor index = tensor(DType::kI32, {2}, {7, bad});
    const std::string says = "index " + std::to_string(static_cast<int>(bad)) + " at element 1 is outside 0..9";
    expectError({"gather", {x, index}, {{DType::kF32, {2}}}, attributes, {5}}, kRange, says);
    expectError({"scatter_add", {index, sample(DType::kF32, {2}, 1)}, {x.spec()}, attributes, {5}}, kRange, says);
  }
}

TEST(Indices, Errors) {
  const Tensor table = sample(DType::kF32, {4, 2}, 1);
  const Tensor ids = tensor(DType::kI32, {3}, {0, 1, 2});
  const AttributeMap attributes = {{"rows", int64_t{4}}};
  expectError({"embedding", {table, ids}, {{DType::kF32, {2, 3}}}, attributes, {0}}, kInvalid,
              "output 0 is f32 [2,3], it must be f32 [3,2]");
  expectError({"embedding", {table, ids}, {{DType::kF32, {3, 2}}}, attributes}, kInvalid, "1 scalars");
  expectError({"embedding", {table, table}, {{DType::kF32, {4, 2, 2}}}, attributes, {0}}, kInvalid, "f32");
  expectError({"pick", {table, ids}, {{DType::kF32, {3}}}, {}, {0}}, kInvalid,
              "input 1 is i32 [3], it must be i32 [4]");
  expectError({"gather", {table, ids}, {{DType::kF32, {3}}}, {{"dim", int64_t{0}}, {"rows", int64_t{4}}}, {0}},
              kInvalid, "f32 [4,2] and i32 [3] differ elsewhere than in the dimension");
}

}  // namespace
}  // namespace weft::testing
