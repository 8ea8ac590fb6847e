#include "weft/ops_elementwise.h"

#include "absl/strings/str_cat.h"
#include "frontend/ops_support.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

// An activation with one number.
Tensor activation(const Function& function, const Tensor& x, const char* name, double number, SourceLine at) {
  Call call(at, function.name, {{"x", x, Takes::kFloats}});
  if (!call.ok() || !call.isFrom(-kLargest, kLargest, name, number)) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set(name, call.builder().getF64FloatAttr(number));
  return call.make(function.mnemonic, attrs);
}

}  // namespace

Tensor abs(const Tensor& x, SourceLine at) {
  return unary("abs", x, Takes::kNumbers, at);
}
Tensor sign(const Tensor& x, SourceLine at) {
  return unary("sign", x, Takes::kNumbers, at);
}
Tensor floor(const Tensor& x, SourceLine at) {
  return unary("floor", x, Takes::kFloats, at);
}
Tensor ceil(const Tensor& x, SourceLine at) {
  return unary("ceil", x, Takes::kFloats, at);
}
Tensor erf(const Tensor& x, SourceLine at) {
  return unary("erf", x, Takes::kFloats, at);
}
Tensor sin(const Tensor& x, SourceLine at) {
  return unary("sin", x, Takes::kFloats, at);
}
Tensor cos(const Tensor& x, SourceLine at) {
  return unary("cos", x, Takes::kFloats, at);
}

Tensor pow(const Operand& a, const Operand& b, SourceLine at) {
  if (b.isNumber() && b.number() == 2 && a.tensor().valid()) {
    return binary({"pow", "mul"}, Takes::kFloats, a, a, at);
  }
  return binary("pow", Takes::kFloats, a, b, at);
}

Tensor square(const Tensor& x, SourceLine at) {
  Call call(at, "square", {{"x", x, Takes::kNumbers}});
  return call.ok() ? mul(x, x, at) : call.undefined();
}

Tensor reciprocal(const Tensor& x, SourceLine at) {
  Call call(at, "reciprocal", {{"x", x, Takes::kFloats}});
  return call.ok() ? div(1, x, at) : call.undefined();
}

Tensor clamp(const Tensor& x, std::optional<double> low, std::optional<double> high, SourceLine at) {
  Call call(at, "clamp", {{"x", x, Takes::kNumbers}});
  if (!call.ok()) {
    return call.undefined();
  }
  if (!low && !high) {
    return call.fail("neither low nor high is given; give one of them, or both");
  }
  if (low && high && *low > *high) {
    return call.fail(absl::StrCat("low = ", *low, " is above high = ", *high, "; exchange them"));
  }
  Tensor y = x;
  if (low) {
    const Tensor bound = scalarLike(x, *low, "clamp", at);
    y = select(compare(x, bound, "lt", at), bound, y, at);
  }
  if (high) {
    const Tensor bound = scalarLike(x, *high, "clamp", at);
    y = select(compare(x, bound, "gt", at), bound, y, at);
  }
  return y;
}

// The greater of two bools is "or", the smaller one "and".
Tensor logicalAnd(const Tensor& a, const Tensor& b, SourceLine at) {
  return binary({"logicalAnd", "minimum"}, Takes::kBools, a, b, at);
}
Tensor logicalOr(const Tensor& a, const Tensor& b, SourceLine at) {
  return binary({"logicalOr", "maximum"}, Takes::kBools, a, b, at);
}

Tensor logicalXor(const Tensor& a, const Tensor& b, SourceLine at) {
  Call call(at, "logicalXor", {{"a", a, Takes::kBools}, {"b", b, Takes::kBools}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("predicate", call.builder().getStringAttr("ne"));
  return call.make("compare", attrs);
}

Tensor logicalNot(const Tensor& x, SourceLine at) {
  Call call(at, "logicalNot", {{"x", x, Takes::kBools}});
  return call.ok() ? compare(x, 0, "eq", at) : call.undefined();
}

Tensor where(const Tensor& condition, const Operand& a, const Operand& b, SourceLine at) {
  return selectAs("where", condition, a, b, at);
}

Tensor sigmoid(const Tensor& x, SourceLine at) {
  return unary("sigmoid", x, Takes::kFloats, at);
}
Tensor silu(const Tensor& x, SourceLine at) {
  return unary("silu", x, Takes::kFloats, at);
}
Tensor softplus(const Tensor& x, SourceLine at) {
  return unary("softplus", x, Takes::kFloats, at);
}
Tensor leakyRelu(const Tensor& x, double slope, SourceLine at) {
  return activation({"leakyRelu", "leaky_relu"}, x, "slope", slope, at);
}
Tensor elu(const Tensor& x, double alpha, SourceLine at) {
  return activation("elu", x, "alpha", alpha, at);
}
Tensor hardSwish(const Tensor& x, SourceLine at) {
  return unary({"hardSwish", "hard_swish"}, x, Takes::kFloats, at);
}

}  // namespace weft
