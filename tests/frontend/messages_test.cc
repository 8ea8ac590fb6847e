// Wrong operands of every function of ops.h and modules.h: the message names the function of the API, what it was given
// and what it takes, on the line of the call, and says nothing of the dialect behind it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "weft/weft.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A graph with tensors of every type and some shapes.
struct Tensors {
  Graph g;
  Tensor f = g.input("f", {4, 8});
  Tensor d = g.input("d", {4, 8}, kF64);
  Tensor i = g.input("i", {4, 8}, kI32);
  Tensor ids = g.input("ids", {4}, kI32);
  Tensor b = g.input("b", {4, 8}, kBool);
  Tensor v = g.parameter("v", {8});
  Tensor w = g.parameter("w", {8, 6});
  Tensor image = g.input("image", {4, 3, 8, 8});
  Tensor kernel = g.parameter("kernel", {6, 3, 3, 3});
  Tensor q = g.input("q", {2, 2, 4, 8});
  Tensor scalar = g.full({}, 1);
};

struct Wrong {
  const char* name;
  std::function<void(Tensors&)> call;
  int line;
  std::vector<std::string> says;
};

void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.name;
}

#define WRONG(name, expression, ...)                          \
  Wrong {                                                     \
    name, [](Tensors& t) { (void)(expression); }, __LINE__, { \
      __VA_ARGS__                                             \
    }                                                         \
  }

Tensor g3(Tensors& t) {
  return t.g.input("three", {3, 8, 4});
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<Wrong>& wrongCalls() {
  static const std::vector<Wrong> calls = {
      // Element types.
      WRONG("AddTypes", add(t.f, t.i), "add: ", "a is f32 [4, 8]", "b i32 [4, 8]", "weft::cast(b, weft::kF32)"),
      WRONG("AddTypesTurned", add(t.i, t.d), "add: ", "a is i32 [4, 8]", "b f64 [4, 8]", "weft::cast(a, weft::kF64)"),
      WRONG("AddBools", add(t.b, t.b), "add: ", "a is bool [4, 8]", "weft::cast(a, weft::kF32)"),
      WRONG("SubTypes", sub(t.f, t.d), "sub: ", "f32 [4, 8]", "f64 [4, 8]", "weft::cast(b, weft::kF32)"),
      WRONG("MulTypes", mul(t.f, t.b), "mul: ", "b is bool [4, 8]", "weft::cast(b"),
      WRONG("DivIntegers", div(t.i, t.i), "div: ", "a is i32 [4, 8]", "weft::cast(a, weft::kF32)"),
      WRONG("MaximumTypes", maximum(t.f, t.i), "maximum: ", "f32 [4, 8]", "i32 [4, 8]", "weft::cast"),
      WRONG("MinimumTypes", minimum(t.i, t.b), "minimum: ", "i32 [4, 8]", "bool [4, 8]", "weft::cast"),
      WRONG("CompareTypes", compare(t.f, t.i, "lt"), "compare: ", "f32 [4, 8]", "i32 [4, 8]", "weft::cast"),
      WRONG("ComparePredicate", compare(t.f, t.f, "<"), "compare: ", "\"<\"", "eq, ne, lt"),
      WRONG("SelectCondition", select(t.f, t.f, t.f), "select: ", "condition is f32 [4, 8]", "weft::compare"),
      WRONG("SelectTypes", select(t.b, t.f, t.i), "select: ", "f32 [4, 8]", "i32 [4, 8]", "weft::cast"),
      WRONG("SelectSwapped", select(t.f, t.b, t.b), "select: ", "condition is f32 [4, 8]", "swapped?"),
      WRONG("SelectNumbers", select(t.b, 1, 2), "select: ", "1 and 2", "full"),
      WRONG("NegBools", neg(t.b), "neg: ", "x is bool [4, 8]", "weft::cast"),
      WRONG("ExpIntegers", exp(t.i), "exp: ", "x is i32 [4, 8]", "weft::cast(x, weft::kF32)"),
      WRONG("LogIntegers", log(t.i), "log: ", "i32 [4, 8]", "weft::cast"),
      WRONG("SqrtBools", sqrt(t.b), "sqrt: ", "bool [4, 8]", "weft::cast"),
      WRONG("RsqrtIntegers", rsqrt(t.i), "rsqrt: ", "i32 [4, 8]", "weft::cast"),
      WRONG("TanhIntegers", tanh(t.i), "tanh: ", "i32 [4, 8]", "weft::cast"),
      WRONG("ReluIntegers", relu(t.i), "relu: ", "i32 [4, 8]", "weft::cast"),
      WRONG("GeluIntegers", gelu(t.i), "gelu: ", "i32 [4, 8]", "weft::cast"),
      WRONG("AbsBools", abs(t.b), "abs: ", "x is bool [4, 8]", "weft::cast"),
      WRONG("FloorIntegers", floor(t.i), "floor: ", "i32 [4, 8]", "weft::cast"),
      WRONG("PowIntegers", pow(t.i, 2), "pow: ", "a is i32 [4, 8]", "weft::cast(a, weft::kF32)"),
      WRONG("PowTypes", pow(t.f, t.d), "pow: ", "f32 [4, 8]", "f64 [4, 8]", "weft::cast"),
      WRONG("SquareBools", square(t.b), "square: ", "bool [4, 8]"),
      WRONG("ReciprocalIntegers", reciprocal(t.i), "reciprocal: ", "i32 [4, 8]"),
      WRONG("ClampNothing", clamp(t.f, {}, {}), "clamp: ", "give one of them"),
      WRONG("ClampExchanged", clamp(t.f, 2, 1), "clamp: ", "low = 2", "high = 1", "exchange"),
      WRONG("ClampFraction", clamp(t.i, 0.5, {}), "clamp: 0.5 is no whole number", "i32 [4, 8]"),
      WRONG("AndNumbers", logicalAnd(t.b, t.f), "logicalAnd: ", "b is f32 [4, 8]", "weft::compare"),
      WRONG("NotNumbers", logicalNot(t.i), "logicalNot: ", "x is i32 [4, 8]", "weft::compare"),
      WRONG("XorShapes", logicalXor(t.b, compare(t.w, 0, "gt")), "logicalXor: ", "do not broadcast"),
      WRONG("WhereCondition", where(t.f, t.f, 0), "where: ", "condition is f32 [4, 8]", "weft::compare"),
      WRONG("SigmoidIntegers", sigmoid(t.i), "sigmoid: ", "i32 [4, 8]", "weft::cast"),
      WRONG("SiluIntegers", silu(t.i), "silu: ", "i32 [4, 8]", "weft::cast"),
      WRONG("LeakyReluIntegers", leakyRelu(t.i), "leakyRelu: ", "i32 [4, 8]", "weft::cast"),
      WRONG("LeakyReluSlope", leakyRelu(t.f, kNan), "leakyRelu: slope = nan; give a number from"),
      WRONG("EluAlpha", elu(t.f, kNan), "elu: alpha = nan; give a number from"),
      WRONG("HardSwishIntegers", hardSwish(t.i), "hardSwish: ", "i32 [4, 8]", "weft::cast"),
      WRONG("AnyNumbers", any(t.f), "any: ", "x is f32 [4, 8]", "weft::compare"),
      WRONG("AllDim", all(t.b, {2}), "all: ", "dimension 2", "bool [4, 8]", "0 to 1"),
      WRONG("MinBools", min(t.b), "min: ", "x is bool [4, 8]", "weft::cast"),
      WRONG("ProdTwice", prod(t.f, {1, -1}), "prod: ", "dims [1, -1]", "f32 [4, 8]", "name each dimension once"),
      WRONG("VarIntegers", var(t.i), "var: ", "i32 [4, 8]", "weft::cast"),
      WRONG("StddevOfOne", stddev(t.scalar), "stddev: ", "f32 []", "1 element", "unbiased = false"),
      WRONG("LogSumExpDim", logSumExp(t.f, {-3}), "logSumExp: ", "dimension -3", "f32 [4, 8]"),
      WRONG("ArgmaxDim", argmax(t.f, 2), "argmax: ", "dimension 2", "f32 [4, 8]", "0 to 1"),
      WRONG("ArgminType", argmin(t.f, 0, {.type = kF32}), "argmin: ", "f32", "kI32 or kI64"),
      WRONG("CumsumBools", cumsum(t.b, 0), "cumsum: ", "x is bool [4, 8]", "weft::cast"),
      WRONG("CumsumDim", cumsum(t.f, -3), "cumsum: ", "dimension -3", "f32 [4, 8]"),
      WRONG("SortDim", sort(t.f, {.dim = 2}), "sort: ", "dimension 2", "f32 [4, 8]"),
      WRONG("TopKCount", topK(t.f, 9), "topK: ", "k = 9", "f32 [4, 8]", "1 to 8"),
      WRONG("LogSoftmaxDim", logSoftmax(t.f, 2), "logSoftmax: ", "dimension 2", "f32 [4, 8]"),
      WRONG("MatmulIntegers", matmul(t.i, t.w), "matmul: ", "a is i32 [4, 8]", "weft::cast(a, weft::kF32)"),
      WRONG("MatmulTypes", matmul(t.d, t.w), "matmul: ", "f64 [4, 8]", "f32 [8, 6]", "weft::cast"),
      WRONG("EinsumIntegers", einsum("ab,bc->ac", t.f, t.i), "einsum: ", "b is i32 [4, 8]", "weft::cast"),
      WRONG("ConvTypes", conv2d(t.image, t.i), "conv2d: ", "weight is i32 [4, 8]", "weft::cast"),
      WRONG("MaxPoolTypes", maxPool2d(t.i, {2, 2}), "maxPool2d: ", "x is i32 [4, 8]", "weft::cast"),
      WRONG("AvgPoolTypes", avgPool2d(t.b, {2, 2}), "avgPool2d: ", "x is bool [4, 8]", "weft::cast"),
      WRONG("ConcatTypes", concat({t.f, t.i}, 0), "concat: ", "f32 [4, 8]", "i32 [4, 8]", "weft::cast"),
      WRONG("SumBools", sum(t.b), "sum: ", "x is bool [4, 8]", "weft::cast"),
      WRONG("MeanIntegers", mean(t.i), "mean: ", "x is i32 [4, 8]", "weft::cast"),
      WRONG("MaxBools", max(t.b), "max: ", "x is bool [4, 8]", "weft::cast"),
      WRONG("SoftmaxIntegers", softmax(t.i), "softmax: ", "x is i32 [4, 8]", "weft::cast"),
      WRONG("LayerNormTypes", layerNorm(t.d, t.v, t.v), "layerNorm: ", "f64 [4, 8]", "f32 [8]", "weft::cast"),
      WRONG("BatchNormTypes", batchNorm(t.i, t.v, t.v), "batchNorm: ", "x is i32 [4, 8]", "weft::cast"),
      WRONG("NormalizeTypes", normalize(t.f, t.v, t.v, {t.v, t.ids}), "normalize: ", "running.variance is i32 [4]"),
      WRONG("EmbeddingSwapped", embedding(t.ids, t.w), "embedding: ", "table is i32 [4]", "ids is f32 [8, 6]",
            "swapped?"),
      WRONG("EmbeddingFloatIds", embedding(t.w, t.f), "embedding: ", "ids is f32 [4, 8]", "row numbers have to be i32",
            "weft::cast(ids, weft::kI32)"),
      WRONG("LabelsSwapped", softmaxCrossEntropy(t.ids, t.f), "softmaxCrossEntropy: ", "logits is i32 [4]",
            "labels is f32 [4, 8]", "swapped?"),
      WRONG("FloatLabels", softmaxCrossEntropy(t.f, t.v), "softmaxCrossEntropy: ", "labels is f32 [8]",
            "class numbers have to be i32 or i64", "weft::cast(labels, weft::kI32)"),
      WRONG("MeanValidLabels", meanValid(t.v, t.v), "meanValid: ", "labels is f32 [8]", "class numbers"),
      WRONG("AttentionTypes", scaledDotProductAttention(t.q, t.q, t.i),
            "scaledDotProductAttention: ", "v is i32 [4, 8]"),
      WRONG("DropoutIntegers", dropout(t.i, 0.5), "dropout: ", "x is i32 [4, 8]", "weft::cast"),
      // Shapes.
      WRONG("AddShapes", add(t.f, t.w), "add: ", "4x8xf32", "8x6xf32", "do not broadcast"),
      WRONG("SelectShapes", select(t.b, t.f, t.w), "select: ", "do not broadcast"),
      WRONG("MatmulShapes", matmul(t.f, t.f), "matmul: ", "k is 8", "and 4 in b"),
      WRONG("MatmulScalar", matmul(t.scalar, t.w), "matmul: ", "a is f32 []", "b is f32 [8, 6]", "by *"),
      WRONG("MatmulBatch", matmul(reshape(t.f, {2, 2, 8}), g3(t)), "matmul: ", "a is f32 [2, 2, 8]",
            "b is f32 [3, 8, 4]", "sizes 2 and 3"),
      WRONG("MatmulInner", matmul(t.f, g3(t), {.transposeB = true}), "matmul: ", "k is 8 in a", "4 in b",
            "f32 [3, 8, 4] transposed"),
      WRONG("EinsumSpec", einsum("ab,bc", t.f, t.w), "einsum: ", "\"ab,bc\" has no \"->\""),
      WRONG("EinsumLetters", einsum("abc,cd->abd", t.f, t.w), "einsum: ", "3 letters", "f32 [4, 8]"),
      WRONG("EinsumSizes", einsum("ab,cb->ac", t.f, t.w), "einsum: ", "'b' is 8 in f32 [4, 8]", "6 in f32 [8, 6]"),
      WRONG("EinsumOperands", einsum("ab,bc->ac", {t.f}), "einsum: ", "2 operands, 1 are given"),
      WRONG("EinsumResult", einsum("ab,bc->ad", t.f, t.w), "einsum: ", "'d' of the result stands in no operand"),
      WRONG("EinsumTwice", einsum("ab,bc->aa", t.f, t.w), "einsum: ", "'a' of the result stands there twice"),
      WRONG("EinsumDots", einsum("...b,bc->...c", t.f, t.w), "einsum: ", "has '.'", "one letter"),
      WRONG("ConvRank", conv2d(t.f, t.kernel), "conv2d: ", "f32 [4, 8]", "four dimensions"),
      WRONG("ConvChannels", conv2d(t.q, t.kernel), "conv2d: ", "2 channels", "takes 3"),
      WRONG("ConvStride", conv2d(t.image, t.kernel, {.strides = {0, 1}}), "conv2d: ", "[0, 1]", "at least 1"),
      WRONG("PoolRank", maxPool2d(t.f, {2, 2}), "maxPool2d: ", "4x8xf32", "four dimensions"),
      WRONG("PoolWindow", avgPool2d(t.image, {9, 9}), "avgPool2d: ", "[9, 9]", "larger than the image"),
      WRONG("PoolWindowSizes", maxPool2d(t.image, {2}), "maxPool2d: ", "[2]", "two numbers"),
      WRONG("ReshapeElements", reshape(t.f, {5, 7}), "reshape: ", "f32 [4, 8] of 32 elements", "[5, 7]"),
      WRONG("ReshapeOpen", reshape(t.f, {5, -1}), "reshape: ", "f32 [4, 8] of 32 elements", "[5, -1]"),
      WRONG("ReshapeTwoOpen", reshape(t.f, {-1, -1}), "reshape: ", "size -1", "one size may be -1"),
      WRONG("ReshapeZero", reshape(t.f, {0, -1}), "reshape: ", "size 0", "at least 1"),
      WRONG("ReshapeHuge", reshape(t.f, {int64_t{1} << 40, int64_t{1} << 40, -1}), "reshape: ", "elements"),
      WRONG("TransposePermutation", transpose(t.f, {0, 0}), "transpose: ", "[0, 0]", "4x8xf32"),
      WRONG("SliceRank", slice(t.f, {0}, {1}), "slice: ", "[0]", "[1]", "4x8xf32"),
      WRONG("SliceOutside", slice(t.f, {3, 0}, {2, 8}), "slice: ", "offset 3 and size 2", "size 4"),
      WRONG("SliceOverflow", slice(t.f, {std::numeric_limits<int64_t>::max(), 0}, {1, 8}), "slice: ", "offset 9223"),
      WRONG("SliceEmpty", slice(t.f, {0, 0}, {0, 8}), "slice: ", "[0, 8]", "at least 1"),
      WRONG("ConcatShapes", concat({t.f, t.w}, 0), "concat: ", "4x8xf32", "8x6xf32", "only in dimension 0"),
      WRONG("ConcatDim", concat({t.f, t.f}, 2), "concat: ", "dimension 2", "f32 [4, 8]", "0 to 1"),
      WRONG("TransposeDim", transpose(t.f, {0, 2}), "transpose: ", "dimension 2", "f32 [4, 8]"),
      WRONG("PadSizes", pad(t.f, {1}, {0}), "pad: ", "[1]", "[0]", "4x8xf32"),
      WRONG("PadNegative", pad(t.f, {-1, 0}, {0, 0}), "pad: ", "[-1, 0]", "use slice"),
      WRONG("PadValue", pad(t.i, {1, 0}, {0, 0}, 0.5), "pad: 0.5 is no whole number", "i32 [4, 8]"),
      WRONG("StackShapes", stack({t.f, t.w}), "stack: ", "f32 [4, 8]", "f32 [8, 6]", "one shape"),
      WRONG("StackDim", stack({t.f, t.f}, 3), "stack: ", "dimension 3", "f32 [4, 8]", "-3 to 2"),
      WRONG("SplitSizes", split(t.f, {3, 4}, 1), "split: ", "[3, 4]", "f32 [4, 8]", "sum 8"),
      WRONG("ChunkParts", chunk(t.f, 9, 1), "chunk: ", "parts = 9", "1 to 8"),
      WRONG("NarrowOutside", narrow(t.f, 0, 3, 2), "narrow: ", "start = 3", "length = 2", "f32 [4, 8]", "0 to 3"),
      WRONG("UnsqueezeDim", unsqueeze(t.f, 4), "unsqueeze: ", "dimension 4", "-3 to 2"),
      WRONG("SqueezeSize", squeeze(t.f, {1}), "squeeze: ", "dimension 1", "f32 [4, 8]", "size 8"),
      WRONG("FlattenOrder", flatten(t.f, 1, 0), "flatten: ", "first = 1", "last = 0", "exchange"),
      WRONG("ExpandShape", expand(t.f, {4, 9}), "expand: ", "4x8xf32", "4x9xf32"),
      WRONG("FlipTwice", flip(t.f, {0, -2}), "flip: ", "[0, -2]", "f32 [4, 8]", "once"),
      WRONG("RollDim", roll(t.f, 1, 2), "roll: ", "dimension 2", "f32 [4, 8]"),
      WRONG("RepeatTimes", repeat(t.f, 0, 1), "repeat: times = 0; give a number from 1"),
      WRONG("TileTimes", tile(t.f, {0, 1}), "tile: a number of times = 0"),
      WRONG("TrilVector", tril(t.v), "tril: ", "f32 [8]", "[..., m, n]"),
      WRONG("LengthMaskFloats", lengthMask(t.v, 4), "lengthMask: ", "f32 [8]", "lengths have to be i32"),
      WRONG("GatherShape", gather(t.f, 1, t.ids), "gather: ", "4xi32", "4x8xf32", "only in dimension 1"),
      WRONG("GatherFloats", gather(t.f, 1, t.f), "gather: ", "index is f32 [4, 8]", "indices have to be i32"),
      WRONG("ScatterTypes", scatterAdd(t.f, 0, t.i, t.d), "scatterAdd: ", "f32 [4, 8]", "f64 [4, 8]"),
      WRONG("ScatterShapes", scatterAdd(t.f, 1, t.i, t.w), "scatterAdd: ", "4x8xi32", "8x6xf32", "one shape"),
      WRONG("TakeIntegers", take(t.i, t.ids), "take: ", "x is i32 [4, 8]", "weft::cast"),
      WRONG("TakeDim", take(t.f, t.ids, 2), "take: ", "dimension 2", "f32 [4, 8]"),
      WRONG("OneHotFloats", oneHot(t.v, 4), "oneHot: ", "f32 [8]", "class numbers have to be i32"),
      WRONG("OneHotClasses", oneHot(t.ids, 0), "oneHot: ", "classes [0]", "at least 1"),
      WRONG("MseShapes", mseLoss(t.f, t.v), "mseLoss: ", "prediction is f32 [4, 8]", "target f32 [8]", "one shape"),
      WRONG("L1Integers", l1Loss(t.f, t.i), "l1Loss: ", "target is i32 [4, 8]", "weft::cast"),
      WRONG("HuberDelta", huberLoss(t.f, t.f, -1), "huberLoss: delta = -1; give a number from"),
      WRONG("SmoothL1Beta", smoothL1Loss(t.f, t.f, 0), "smoothL1Loss: beta = 0; give a number from"),
      WRONG("BceShapes", bceWithLogits(t.f, t.v), "bceWithLogits: ", "f32 [4, 8]", "f32 [8]", "one shape"),
      WRONG("KlScalar", klDivergence(t.scalar, t.scalar), "klDivergence: ", "f32 []", "classes"),
      WRONG("CosineDim", cosineSimilarity(t.f, t.f, 2), "cosineSimilarity: ", "dimension 2", "f32 [4, 8]"),
      WRONG("SmoothingRange", crossEntropy(t.f, t.ids, {.labelSmoothing = 2}), "crossEntropy: labelSmoothing = 2"),
      WRONG("ProbabilityShapes", crossEntropy(t.f, t.v), "crossEntropy: ", "logits is f32 [4, 8]", "target f32 [8]"),
      WRONG("LabelShapes", crossEntropy(t.f, t.i), "crossEntropy: ", "4x8xi32", "4x8xf32"),
      WRONG("BroadcastShape", broadcastTo(t.f, {4, 9}), "broadcastTo: ", "4x8xf32", "4x9xf32"),
      WRONG("BroadcastNegative", broadcastTo(t.v, {-4, 8}), "broadcastTo: ", "[-4, 8]", "at least 1"),
      WRONG("SumDim", sum(t.f, {2}), "sum: ", "dimension 2", "f32 [4, 8]", "0 to 1"),
      WRONG("MeanDim", mean(t.f, {-3}), "mean: ", "dimension -3", "f32 [4, 8]"),
      WRONG("MaxDimTwice", max(t.f, {1, 1}), "max: ", "[1, 1]", "f32 [4, 8]", "once"),
      WRONG("SoftmaxDimension", softmax(t.f, 2), "softmax: ", "dim = 2", "-2 to 1"),
      WRONG("SoftmaxScalar", softmax(t.scalar), "softmax: ", "f32", "last dimension"),
      WRONG("LayerNormShape", layerNorm(t.f, t.w, t.v), "layerNorm: ", "8x6xf32", "4x8xf32"),
      WRONG("LayerNormDims", layerNorm(t.f, t.f, t.f, {.dims = {1, 1}}), "layerNorm: ", "dims [1, 1]", "f32 [4, 8]",
            "name each dimension once"),
      WRONG("LayerNormDim", layerNorm(t.f, t.v, t.v, {.dims = {2}}), "layerNorm: ", "dimension 2", "f32 [4, 8]"),
      WRONG("LayerNormSizes", layerNorm(t.f, t.v, t.v, {.dims = {0}}), "layerNorm: ", "gamma f32 [8]", "[4]"),
      WRONG("BatchNormShape", batchNorm(t.image, t.v, t.v), "batchNorm: ", "x [4,3,8,8] with gamma [8] and beta [8]",
            "[c]"),
      WRONG("NormalizeShape", normalize(t.f, t.v, t.w, {t.v, t.v}), "normalize: ", "x [4,8]", "beta [8,6]", "[c]"),
      WRONG("EmbeddingRank", embedding(t.v, t.ids), "embedding: ", "8xf32", "two dimensions"),
      WRONG("LossShapes", softmaxCrossEntropy(t.f, t.i), "softmaxCrossEntropy: ", "4x8xi32", "4x8xf32"),
      WRONG("MeanValidShapes", meanValid(t.v, t.ids), "meanValid: ", "f32 [8]", "i32 [4]", "each label"),
      WRONG("AttentionRank", scaledDotProductAttention(t.f, t.f, t.f), "scaledDotProductAttention: ", "4x8xf32",
            "four"),
      // Numbers.
      WRONG("FractionBesideIntegers", t.i * 0.5, "mul: 0.5 is no whole number", "i32 [4, 8]", "cast the tensor"),
      WRONG("TooLargeForIntegers", t.i + 3e9, "add: 3e+09", "i32 [4, 8]"),
      WRONG("TooLargeForF32", t.f * 1e300, "mul: 1e+300 is too large for f32", "f32 [4, 8]"),
      WRONG("NoNumber", maximum(t.f, kNan), "maximum: nan is no number", "f32 [4, 8]"),
      WRONG("IntegersDivided", t.i / 2, "div: ", "a is i32 [4, 8]", "weft::cast(a, weft::kF32)"),
      WRONG("Epsilon", layerNorm(t.f, t.v, t.v, {.epsilon = kNan}), "layerNorm: epsilon = nan; give a number from 0"),
      WRONG("NegativeEpsilon", batchNorm(t.image, t.g.parameter("c", {3}), t.g.parameter("e", {3}), -1),
            "batchNorm: epsilon = -1; give a number from 0"),
      WRONG("Momentum", nn::BatchNorm2d(t.g, "n", 3, {.momentum = 1.5})(t.image),
            "batchNorm: running.momentum = 1.5; give a number from 0 to 1"),
      WRONG("Rate", dropout(t.f, 1.5), "dropout: ", "1.5", "[0, 1)"),
      WRONG("Scale", scaledDotProductAttention(t.q, t.q, t.q, {.scale = kNan}), "scale = nan; give a number from"),
      WRONG("Full", t.g.full({2}, 0.5, kI32), "full: 0.5 is no whole number"),
      WRONG("FullShape", t.g.full({-2}, 0.5), "full: shape [-2]", "at least 1"),
      WRONG("Iota", t.g.iota({2}, 1), "iota: dim 1", "2xi32"),
      WRONG("Deviation", t.g.parameter("p", {2}, Init::normal(kNan)), "'p'", "normal(0, nan)", "not finite"),
      WRONG("FirstState", t.g.state("s", {2}, kF32, kNan), "'s'", "nan", "not finite"),
      WRONG("HugeInput", t.g.input("x", {int64_t{1} << 40, 1 << 20}), "'x'", "elements"),
      // Tensors of no graph.
      WRONG("NoTensor", matmul(t.f, Tensor()), "matmul: operand b belongs to no graph"),
      WRONG("NoOutput", t.g.output("y", Tensor()), "'y' is no tensor"),
      WRONG("OutputTwice", (inspect(t.f, "y"), inspect(t.f, "y")), "'y' already"),
      // Modules.
      WRONG("Linear", nn::Linear(t.g, "fc", 6, 2)(t.f), "nn::Linear: matmul: ", "k is 8", "6 in b"),
      WRONG("LinearIntegers", nn::Linear(t.g, "fc", 8, 2)(t.i), "nn::Linear: matmul: ", "a is i32 [4, 8]"),
      WRONG("Embedding", nn::Embedding(t.g, "e", 6, 2)(t.f), "nn::Embedding: embedding: ", "ids is f32 [4, 8]"),
      WRONG("LayerNorm", nn::LayerNorm(t.g, "n", 6)(t.f), "nn::LayerNorm: layerNorm: ", "6xf32", "4x8xf32"),
      WRONG("Conv2d", nn::Conv2d(t.g, "c", 2, 4, 3)(t.image), "nn::Conv2d: conv2d: ", "3 channels", "takes 2"),
      WRONG("BatchNorm", nn::BatchNorm2d(t.g, "n", 2)(t.image), "nn::BatchNorm2d: batchNorm: ", "gamma [2]"),
      WRONG("MaxPool", nn::MaxPool2d(9)(t.image), "nn::MaxPool2d: maxPool2d: ", "[9, 9]"),
      WRONG("AvgPool", nn::AvgPool2d(2)(t.f), "nn::AvgPool2d: avgPool2d: ", "4x8xf32", "four dimensions"),
      WRONG("Attention", nn::Attention(t.g, 8, 2)(t.f), "nn::Attention: ", "f32 [4, 8]", "[batch, rows, 8]"),
      WRONG("Mlp", nn::Mlp(t.g, 6, 12)(t.f), "nn::Mlp: nn::Linear: matmul: ", "k is 8", "6 in b"),
      WRONG("Block", nn::TransformerBlock(t.g, "h", 8, 3)(reshape(t.f, {1, 4, 8})),
            "nn::TransformerBlock: nn::Attention: ", "8 is not a multiple of 3 heads"),
      WRONG("NoWidth", nn::Linear(t.g, "fc", 0, 2), "'fc.weight' has a dimension of size 0"),
  };
  return calls;
}

class MessageTest : public testing::TestWithParam<Wrong> {};

TEST_P(MessageTest, IsOfTheApi) {
  Tensors tensors;
  GetParam().call(tensors);
  const std::string message(tensors.g.status().message());
  EXPECT_THAT(message, HasSubstr("messages_test.cc:" + std::to_string(GetParam().line) + ": error: "));
  for (const std::string& part : GetParam().says) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_THAT(message, AllOf(Not(HasSubstr("'nn.")), Not(HasSubstr("nn.")), Not(HasSubstr("op operand #"))));
}

INSTANTIATE_TEST_SUITE_P(Wrong, MessageTest, testing::ValuesIn(wrongCalls()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MessageTest, FollowUpsAreSilent) {
  Tensors t;
  const Tensor wrong = matmul(t.f, t.f);
  const std::string first(t.g.status().message());
  (void)softmax(2.0 * (wrong + t.f) / maximum(wrong, 1));
  EXPECT_EQ(std::string(t.g.status().message()), first);
}

// The lines of the operators of one kind in a compiled forward program that gives `value`.
std::vector<int64_t> linesOf(Graph& g, const Tensor& value, const std::string& kind) {
  g.output(kind, value);
  const absl::StatusOr<Program> program = compileForward(g, Tensor(), {.devices = 2});
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return {};
  }
  std::vector<int64_t> lines;
  for (const plan::Function& function : program->plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (instruction.kernel() == kind) {
        lines.push_back(program->plan.locations(static_cast<int>(instruction.location())).line());
      }
    }
  }
  return lines;
}

TEST(LineTest, OperatorsOfOneExpressionHaveTheirOwn) {
  Graph g;
  const Tensor z = g.input("z", {4, 8});
  const Tensor target = g.input("target", {4, 8});
  const Tensor w = g.parameter("w", {8});
  const int at = __LINE__ + 1;
  const Tensor loss = mean((z - target) *  // clang-format keeps the lines apart
                           (z + w) /       //
                           (2.0 + exp(w)));
  EXPECT_EQ(linesOf(g, loss, "sub"), std::vector<int64_t>{at});
  EXPECT_EQ(linesOf(g, loss, "mul"), std::vector<int64_t>{at});
  EXPECT_EQ(linesOf(g, loss, "add"), (std::vector<int64_t>{at + 1, at + 2}));
  EXPECT_EQ(linesOf(g, loss, "exp"), std::vector<int64_t>{at + 2});
  EXPECT_EQ(linesOf(g, loss, "div"), std::vector<int64_t>{at});
}

TEST(LineTest, OfAnOperatorNotOfItsOperands) {
  Graph g;
  const Tensor a = g.input("a", {4, 8});
  const Tensor b = g.input("b", {3, 8});
  const int at = __LINE__ + 1;
  (void)(a * b);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("messages_test.cc:" + std::to_string(at) + ": error: mul"));
}

TEST(LineTest, ShardKeepsThatOfTheOperator) {
  Graph g;
  const int at = __LINE__ + 1;
  const Tensor y = matmul(g.input("x", {4, 8}), g.parameter("w", {8, 6}));
  y.shard({{2, 1}, {1, 1}});
  EXPECT_EQ(linesOf(g, y, "matmul"), std::vector<int64_t>{at});
}

// What the program makes of inputs x = {1, 2, 4} and i = {1, 2, 4}.
std::vector<float> valuesOf(const std::function<Tensor(const Tensor& x, const Tensor& i)>& build) {
  Graph g;
  const Tensor x = g.input("x", {3}, kF32, {.batchDim = -1});
  const Tensor i = g.input("i", {3}, kI32, {.batchDim = -1});
  // Both inputs are read, whatever is built.
  g.output("y", cast(build(x, i), kF32) + 0 * (x + cast(i, kF32)));
  const absl::StatusOr<Program> program = compileForward(g, Tensor());
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return {};
  }
  const KernelRegistry kernels = cpuKernels();
  auto executor = Executor::create(program->plan, kernels);
  Feed feed(**executor);
  feed.write("x", std::vector<float>{1, 2, 4});
  feed.write("i", std::vector<int32_t>{1, 2, 4});
  EXPECT_TRUE(feed.status().ok() && (*executor)->runStep().ok());
  const std::vector<char> bytes = *(*executor)->readTensor("y");
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  return {values, values + 3};
}

TEST(ScalarTest, OnEitherSideOfEveryOperator) {
  using Values = std::vector<float>;
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return 2.0 * x; }), (Values{2, 4, 8}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return x * 2; }), (Values{2, 4, 8}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return 1 + x; }), (Values{2, 3, 5}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return x + 1.5F; }), (Values{2.5, 3.5, 5.5}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return 1.0 - x; }), (Values{0, -1, -3}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return x - 1; }), (Values{0, 1, 3}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return 1.0 / x; }), (Values{1, 0.5, 0.25}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return x / 2; }), (Values{0.5, 1, 2}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return -x; }), (Values{-1, -2, -4}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return maximum(x, 2); }), (Values{2, 2, 4}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return minimum(2.5, x); }), (Values{1, 2, 2.5}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return compare(x, 2, "ge"); }), (Values{0, 1, 1}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor&) { return select(compare(2, x, "lt"), x, -1); }),
            (Values{-1, -1, 4}));
  EXPECT_EQ(valuesOf([](const Tensor&, const Tensor& i) { return 3 * i - int64_t{1}; }), (Values{2, 5, 11}));
  EXPECT_EQ(valuesOf([](const Tensor&, const Tensor& i) { return 10.0 - i; }), (Values{9, 8, 6}));
  EXPECT_EQ(valuesOf([](const Tensor& x, const Tensor& i) { return cast(i, kF32) / x; }), (Values{1, 1, 1}));
}

TEST(ScalarTest, TakesTheTypeOfTheTensor) {
  Graph g;
  EXPECT_EQ((2 * g.input("d", {3}, kF64)).type(), kF64);
  EXPECT_EQ((2.0 * g.input("l", {3}, kI64)).type(), kI64);
  EXPECT_EQ((g.input("f", {3}) / 3).type(), kF32);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

}  // namespace
}  // namespace weft
