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
  if (const Tensor bias = scoreBias(q, options, at); bias.graph() != nullptr) {
    operands.push_back({"bias", bias, Takes::kFloats});
  }
  Call call(at, "scaledDotProductAttention", std::move(operands));
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("causal", call.builder().getBoolAttr(options.causal));
  attrs.set("scale", call.builder().getF64FloatAttr(scale));
  return call.make("attention", attrs);
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
