#include "weft/ops_losses.h"

#include "absl/strings/str_cat.h"
#include "frontend/ops_support.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

Tensor reduced(const Tensor& losses, LossReduction reduction, SourceLine at) {
  switch (reduction) {
    case LossReduction::kMean:
      return mean(losses, {}, false, at);
    case LossReduction::kSum:
      return sum(losses, {}, false, at);
    case LossReduction::kNone:
      return losses;
  }
  return losses;
}

// Broadcasting would compare elements that have nothing to do with one another.
bool sameShapes(Call& call, const NamedOperand& a, const NamedOperand& b) {
  if (a.tensor.shape() != b.tensor.shape()) {
    call.fail(absl::StrCat("operand ", a.name, " is ", describe(a.tensor), " and operand ", b.name, " ",
                           describe(b.tensor), "; they need one shape, reshape one of them"));
    return false;
  }
  return true;
}

// prediction - target, or an undefined tensor.
Tensor differenceOf(const char* function, const Tensor& prediction, const Tensor& target, SourceLine at) {
  const NamedOperand a = {"prediction", prediction, Takes::kFloats};
  const NamedOperand b = {"target", target, Takes::kFloats};
  Call call(at, function, {a, b});
  return call.ok() && sameShapes(call, a, b) ? sub(prediction, target, at) : call.undefined();
}

// q (|d| - q / 2) with q = min(|d|, delta).
Tensor huber(const char* function, const char* name, double delta, const Tensor& difference, SourceLine at) {
  Call call(at, function, {{"prediction", difference}});
  if (!call.ok() || !call.isFrom(1e-30, kLargest, name, delta)) {
    return call.undefined();
  }
  const Tensor size = abs(difference, at);
  const Tensor small = minimum(size, delta, at);
  return mul(small, sub(size, mul(small, 0.5, at), at), at);
}

// Per row, 0 where the label is ignored: lse - (1 - s) logits[label] - s mean(logits).
Tensor smoothedLoss(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, SourceLine at) {
  Call call(at, "crossEntropy", {{"logits", logits}, {"labels", labels}});
  NamedAttrList attrs;
  attrs.set("ignore_index", call.builder().getI64IntegerAttr(options.ignoreIndex));
  attrs.set("rows", call.builder().getI64IntegerAttr(logits.dim(-1)));
  const std::vector<Tensor> results = call.makeAll("softmax_cross_entropy", attrs);
  const double smoothing = options.labelSmoothing;
  if (smoothing == 0 || results.size() < 2) {
    return results[0];
  }
  const Tensor uniform = sub(results[1], mean(logits, {-1}, false, at), at);
  const Tensor valid = compare(labels, options.ignoreIndex, "ne", at);
  return add(mul(results[0], 1 - smoothing, at), select(valid, mul(uniform, smoothing, at), 0, at), at);
}

}  // namespace

Tensor mseLoss(const Tensor& prediction, const Tensor& target, LossReduction reduction, SourceLine at) {
  const Tensor difference = differenceOf("mseLoss", prediction, target, at);
  return reduced(mul(difference, difference, at), reduction, at);
}

Tensor l1Loss(const Tensor& prediction, const Tensor& target, LossReduction reduction, SourceLine at) {
  return reduced(abs(differenceOf("l1Loss", prediction, target, at), at), reduction, at);
}

Tensor huberLoss(const Tensor& prediction, const Tensor& target, double delta, LossReduction reduction, SourceLine at) {
  const Tensor difference = differenceOf("huberLoss", prediction, target, at);
  return reduced(huber("huberLoss", "delta", delta, difference, at), reduction, at);
}

Tensor smoothL1Loss(const Tensor& prediction, const Tensor& target, double beta, LossReduction reduction,
                    SourceLine at) {
  const Tensor difference = differenceOf("smoothL1Loss", prediction, target, at);
  return reduced(div(huber("smoothL1Loss", "beta", beta, difference, at), beta, at), reduction, at);
}

// -log s = softplus(-x) and -log(1 - s) = softplus(-x) + x.
Tensor bceWithLogits(const Tensor& logits, const Tensor& target, const BceOptions& options, SourceLine at) {
  const NamedOperand a = {"logits", logits, Takes::kFloats};
  const NamedOperand b = {"target", target, Takes::kFloats};
  Call call(at, "bceWithLogits", {a, b});
  if (!call.ok() || !sameShapes(call, a, b) || !call.isFrom(0, kLargest, "positiveWeight", options.positiveWeight)) {
    return call.undefined();
  }
  if (options.positiveWeight == 1) {
    return reduced(sub(softplus(logits, at), mul(logits, target, at), at), options.reduction, at);
  }
  const Tensor weight = add(mul(target, options.positiveWeight - 1, at), 1, at);
  const Tensor positive = mul(weight, softplus(neg(logits, at), at), at);
  return reduced(add(positive, mul(sub(1, target, at), logits, at), at), options.reduction, at);
}

Tensor klDivergence(const Tensor& logInput, const Tensor& target, LossReduction reduction, SourceLine at) {
  const NamedOperand a = {"logInput", logInput, Takes::kFloats};
  const NamedOperand b = {"target", target, Takes::kFloats};
  Call call(at, "klDivergence", {a, b});
  if (!call.ok() || !sameShapes(call, a, b)) {
    return call.undefined();
  }
  if (target.shape().empty()) {
    return call.fail(absl::StrCat("target is ", describe(target), "; it needs a dimension of classes, the last one"));
  }
  const Tensor isZero = compare(target, 0, "eq", at);
  const Tensor logTarget = log(select(isZero, 1, target, at), at);
  const Tensor terms = mul(target, sub(logTarget, logInput, at), at);
  // log q may be -inf where p is 0.
  return reduced(sum(select(isZero, 0, terms, at), {-1}, false, at), reduction, at);
}

Tensor cosineSimilarity(const Tensor& a, const Tensor& b, int64_t dim, double epsilon, SourceLine at) {
  const NamedOperand left = {"a", a, Takes::kFloats};
  const NamedOperand right = {"b", b, Takes::kFloats};
  Call call(at, "cosineSimilarity", {left, right});
  if (!call.ok() || !sameShapes(call, left, right) || !countFromStart(call, a, dim) ||
      !call.isFrom(1e-15, 1, "epsilon", epsilon)) {
    return call.undefined();
  }
  const auto dot = [&](const Tensor& x, const Tensor& y) { return sum(mul(x, y, at), {dim}, false, at); };
  const Tensor squares = maximum(mul(dot(a, a), dot(b, b), at), epsilon * epsilon, at);
  return mul(dot(a, b), rsqrt(squares, at), at);
}

Tensor crossEntropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options, SourceLine at) {
  Call call(at, "crossEntropy", {{"logits", logits, Takes::kFloats}, {"target", target, Takes::kAny}});
  const bool isLabels = target.valid() && (target.type() == kI32 || target.type() == kI64);
  if (isLabels) {
    call = Call(at, "crossEntropy", {{"logits", logits, Takes::kFloats}, {"target", target, Takes::kIds}});
  }
  const double smoothing = options.labelSmoothing;
  if (!call.ok() || !call.isFrom(0, 1, "labelSmoothing", smoothing)) {
    return call.undefined();
  }
  if (logits.shape().empty()) {
    return call.fail(absl::StrCat("logits are ", describe(logits), "; they need a dimension of classes, the last one"));
  }
  if (isLabels) {
    const Tensor losses = smoothedLoss(logits, target, options, at);
    return options.reduction == LossReduction::kMean ? meanValid(losses, target, options.ignoreIndex, at)
                                                     : reduced(losses, options.reduction, at);
  }
  if (!sameShapes(call, {"logits", logits}, {"target", target})) {
    return call.undefined();
  }
  const double uniform = smoothing / static_cast<double>(logits.dim(-1));
  const Tensor p = smoothing == 0 ? target : add(mul(target, 1 - smoothing, at), uniform, at);
  return reduced(neg(sum(mul(p, logSoftmax(logits, -1, at), at), {-1}, false, at), at), options.reduction, at);
}

}  // namespace weft
