#include "weft/ops_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/ops_support.h"
#include "weft/ops.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

// x with dimensions of size 1 in front, as many as make four.
Tensor asScores(const Tensor& x, SourceLine at) {
  Shape shape = x.shape();
  if (shape.size() >= 4) {
    return x;
  }
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return reshape(x, shape, at);
}

// What is added to the scores: the bias, and -infinity where the mask hides a key. Not valid where there is neither.
Tensor scoreBias(const Tensor& q, const AttentionOptions& options, SourceLine at) {
  if (options.mask.graph() == nullptr) {
    return options.bias.graph() == nullptr ? Tensor() : asScores(options.bias, at);
  }
  const Tensor seen =
      options.bias.graph() == nullptr ? scalarLike(q, 0.0, "scaledDotProductAttention", at) : options.bias;
  return asScores(select(options.mask, seen, -std::numeric_limits<double>::infinity(), at), at);
}

// Scores at or below it count as hidden: a query all of whose keys are hidden gets zeros, no NaN.
constexpr double kHidden = -1e30;

// Attention in parts, with dropout of the softmax. `bias`: that of scoreBias. The shapes are known to fit.
Tensor attentionInParts(const Call& call, const std::vector<NamedOperand>& operands, const Tensor& bias, double scale,
                        const AttentionOptions& options, SourceLine at) {
  const Tensor& q = operands[0].tensor;
  const Tensor& k = operands[1].tensor;
  const Shape scored = {q.dim(0), q.dim(1), q.dim(2), k.dim(2)};
  // Heads of q that share one of k and v stand beside it: [B, G, H / G, ...].
  const bool grouped = q.dim(1) != k.dim(1);
  const auto beside = [&](const Tensor& x) {
    return grouped ? reshape(x, {x.dim(0), k.dim(1), x.dim(1) / k.dim(1), x.dim(2), x.dim(3)}, at) : x;
  };
  const auto together = [&](const Tensor& x, const Shape& shape) { return grouped ? reshape(x, shape, at) : x; };
  const Tensor products = einsum(grouped ? "bgrtd,bgsd->bgrts" : "bhtd,bhsd->bhts", beside(mul(q, scale, at)), k, at);
  Tensor scores = together(products, scored);
  if (bias.graph() != nullptr) {
    scores = add(scores, bias, at);
  }
  if (options.causal) {
    const Shape square = {1, 1, scored[2], scored[3]};
    const Tensor past =
        compare(iotaOf(call, square, 2, Type::kI32, at), iotaOf(call, square, 3, Type::kI32, at), "ge", at);
    scores = select(past, scores, -std::numeric_limits<double>::infinity(), at);
  }
  Tensor weights;
  if (bias.graph() == nullptr) {
    weights = softmax(scores, at);  // a causal query sees the first key at least
  } else {
    weights = select(compare(scores, kHidden, "gt", at), softmax(maximum(scores, kHidden, at), at), 0.0, at);
  }
  weights = dropout(weights, options.dropout, options.seed, at);
  const char* mixing = grouped ? "bgrts,bgsd->bgrtd" : "bhts,bhsd->bhtd";
  return together(einsum(mixing, beside(weights), operands[2].tensor, at), q.shape());
}

}  // namespace

Tensor scaledDotProductAttention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                                 SourceLine at) {
  const double scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(-1), 1))));
  std::vector<NamedOperand> operands = {{"q", q, Takes::kFloats}, {"k", k, Takes::kFloats}, {"v", v, Takes::kFloats}};
  for (const NamedOperand& operand :
       {NamedOperand{"mask", options.mask, Takes::kBools}, NamedOperand{"bias", options.bias, Takes::kFloats}}) {
    if (operand.tensor.graph() != nullptr) {
      operands.push_back(operand);
    }
  }
  Call checked(at, "scaledDotProductAttention", operands);
  if (!checked.ok() || !checked.isFrom(-kLargest, kLargest, "scale", scale)) {
    return checked.undefined();
  }
  operands.resize(3);
  const Tensor bias = scoreBias(q, options, at);
  if (bias.graph() != nullptr) {
    operands.push_back({"bias", bias, Takes::kFloats});
  }
  Call call(at, "scaledDotProductAttention", operands);
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("causal", call.builder().getBoolAttr(options.causal));
  attrs.set("scale", call.builder().getF64FloatAttr(scale));
  const Tensor mixed = call.make("attention", attrs);
  if (options.dropout == 0 || !mixed.valid()) {
    return mixed;
  }
  mixed.graph()->discardLast();  // it has checked the shapes
  return attentionInParts(call, operands, bias, scale, options, at);
}

Tensor rmsNorm(const Tensor& x, const Tensor& gamma, double epsilon, SourceLine at) {
  Call call(at, "rmsNorm", {{"x", x, Takes::kFloats}, {"gamma", gamma, Takes::kFloats}});
  if (!call.ok() || !call.isFrom(0, kLargest, "epsilon", epsilon)) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("epsilon", call.builder().getF64FloatAttr(epsilon));
  return call.make("rms_norm", attrs);
}

Tensor rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved, SourceLine at) {
  Call call(at, "rotary", {{"x", x, Takes::kFloats}, {"cos", cos, Takes::kFloats}, {"sin", sin, Takes::kFloats}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("interleaved", call.builder().getBoolAttr(interleaved));
  return call.make("rotary", attrs);
}

RotaryTables rotaryTables(Graph& g, int64_t rows, int64_t width, double base, Type type, SourceLine at) {
  if (rows < 1 || width < 2 || width % 2 != 0 || !(base > 0)) {
    const Tensor failed =
        g.impl()->fail(at, absl::StrCat("rotaryTables: ", rows, " rows of width ", width, " with base ", base,
                                        "; take at least one row, an even width and a positive base"));
    return {failed, failed};
  }
  const int64_t half = width / 2;
  std::vector<double> cos(rows * half);
  std::vector<double> sin(rows * half);
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(width);
      const double angle = static_cast<double>(t) * std::pow(base, exponent);
      cos[t * half + i] = std::cos(angle);
      sin[t * half + i] = std::sin(angle);
    }
  }
  return {g.constant({rows, half}, cos, type, at), g.constant({rows, half}, sin, type, at)};
}

}  // namespace weft
