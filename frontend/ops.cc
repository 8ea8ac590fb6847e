#include "weft/ops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"
#include "frontend/ops_support.h"
#include "ir/program/program.h"

namespace weft {

using mlir::NamedAttrList;
using mlir::RankedTensorType;

Tensor add(const Operand& a, const Operand& b, SourceLine at) {
  return binary("add", Takes::kNumbers, a, b, at);
}
Tensor sub(const Operand& a, const Operand& b, SourceLine at) {
  return binary("sub", Takes::kNumbers, a, b, at);
}
Tensor mul(const Operand& a, const Operand& b, SourceLine at) {
  return binary("mul", Takes::kNumbers, a, b, at);
}
Tensor div(const Operand& a, const Operand& b, SourceLine at) {
  return binary("div", Takes::kFloats, a, b, at);
}
Tensor maximum(const Operand& a, const Operand& b, SourceLine at) {
  return binary("maximum", Takes::kAny, a, b, at);
}
Tensor minimum(const Operand& a, const Operand& b, SourceLine at) {
  return binary("minimum", Takes::kAny, a, b, at);
}
Tensor operator+(const Operand& a, const Operand& b) {
  return add(a, b, a.at());
}
Tensor operator-(const Operand& a, const Operand& b) {
  return sub(a, b, a.at());
}
Tensor operator*(const Operand& a, const Operand& b) {
  return mul(a, b, a.at());
}
Tensor operator/(const Operand& a, const Operand& b) {
  return div(a, b, a.at());
}
Tensor operator-(const Operand& x) {
  return neg(x.tensor(), x.at());
}

Tensor compare(const Operand& a, const Operand& b, const std::string& predicate, SourceLine at) {
  const Pair pair = tensorsOf("compare", a, b, at);
  Call call(at, "compare", {{"a", pair.a}, {"b", pair.b}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("predicate", call.builder().getStringAttr(predicate));
  return call.make("compare", attrs);
}

Tensor select(const Tensor& condition, const Operand& a, const Operand& b, SourceLine at) {
  return selectAs("select", condition, a, b, at);
}

Tensor neg(const Tensor& x, SourceLine at) {
  return unary("neg", x, Takes::kNumbers, at);
}
Tensor exp(const Tensor& x, SourceLine at) {
  return unary("exp", x, Takes::kFloats, at);
}
Tensor log(const Tensor& x, SourceLine at) {
  return unary("log", x, Takes::kFloats, at);
}
Tensor sqrt(const Tensor& x, SourceLine at) {
  return unary("sqrt", x, Takes::kFloats, at);
}
Tensor rsqrt(const Tensor& x, SourceLine at) {
  return unary("rsqrt", x, Takes::kFloats, at);
}
Tensor tanh(const Tensor& x, SourceLine at) {
  return unary("tanh", x, Takes::kFloats, at);
}
Tensor relu(const Tensor& x, SourceLine at) {
  return unary("relu", x, Takes::kFloats, at);
}

Tensor gelu(const Tensor& x, Gelu form, SourceLine at) {
  Call call(at, "gelu", {{"x", x, Takes::kFloats}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("approximate", call.builder().getStringAttr(form == Gelu::kTanh ? "tanh" : "none"));
  return call.make("gelu", attrs);
}

Tensor cast(const Tensor& x, Type type, SourceLine at) {
  Call call(at, "cast", {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  const mlir::Type result = RankedTensorType::get(x.shape(), x.graph()->elementType(type));
  return call.make("cast", {}, result);
}

Tensor reshape(const Tensor& x, const Shape& shape, SourceLine at) {
  Call call(at, "reshape", {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  Shape full = shape;
  const auto open = std::find(full.begin(), full.end(), -1);
  if (open != full.end()) {
    *open = 1;
  }
  if (!call.sizes("(one size may be -1) shape", full)) {
    return call.undefined();
  }
  const int64_t elements = elementsOf(x.shape());
  if (open != full.end()) {
    *open = std::max<int64_t>(elements / elementsOf(full), 1);
  }
  if (elementsOf(full) != elements) {
    return call.fail(absl::StrCat("x is ", describe(x), " of ", elements, " elements, which do not fill the shape [",
                                  absl::StrJoin(shape, ", "), "]"));
  }
  const mlir::Type result = RankedTensorType::get(full, call.graph()->elementType(x.type()));
  return call.make("reshape", {}, result);
}

Tensor transpose(const Tensor& x, const Shape& permutation, SourceLine at) {
  Call call(at, "transpose", {{"x", x}});
  Shape order = permutation;
  if (!call.ok() || !countFromStart(call, x, order)) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("permutation", call.builder().getDenseI64ArrayAttr(order));
  return call.make("transpose", attrs);
}

Tensor slice(const Tensor& x, const Shape& offsets, const Shape& sizes, SourceLine at) {
  Call call(at, "slice", {{"x", x}});
  if (!call.ok() || !call.sizes("sizes", sizes)) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("offsets", call.builder().getDenseI64ArrayAttr(offsets));
  attrs.set("sizes", call.builder().getDenseI64ArrayAttr(sizes));
  return call.make("slice", attrs);
}

Tensor concat(const std::vector<Tensor>& xs, int64_t dim, SourceLine at) {
  std::vector<NamedOperand> operands;
  for (const Tensor& x : xs) {
    operands.push_back({"of xs", x});
  }
  Call call(at, "concat", std::move(operands));
  if (!call.ok() || !countFromStart(call, xs.front(), dim)) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("dim", call.builder().getI64IntegerAttr(dim));
  return call.make("concat", attrs);
}

Tensor broadcastTo(const Tensor& x, const Shape& shape, SourceLine at) {
  Call call(at, "broadcastTo", {{"x", x}});
  if (!call.ok() || !call.sizes("shape", shape)) {
    return call.undefined();
  }
  const mlir::Type result = RankedTensorType::get(shape, call.graph()->elementType(x.type()));
  return call.make("broadcast", {}, result);
}

Tensor sum(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce("sum", Takes::kNumbers, x, dims, keepDims, at);
}
Tensor mean(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce("mean", Takes::kFloats, x, dims, keepDims, at);
}
Tensor max(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce("max", Takes::kNumbers, x, dims, keepDims, at);
}

Tensor softmax(const Tensor& x, SourceLine at) {
  return unary("softmax", x, Takes::kFloats, at);
}

Tensor softmax(const Tensor& x, int64_t dim, SourceLine at) {
  Call call(at, "softmax", {{"x", x, Takes::kFloats}});
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (!call.ok() || !call.isFrom(-rank, rank - 1, "dim", dim)) {
    return call.undefined();
  }
  const int64_t from = dim < 0 ? dim + rank : dim;
  if (from == rank - 1) {
    return softmax(x, at);
  }
  Shape exchanged(rank);
  std::iota(exchanged.begin(), exchanged.end(), 0);
  std::swap(exchanged[from], exchanged[rank - 1]);
  return transpose(softmax(transpose(x, exchanged, at), at), exchanged, at);
}

Tensor layerNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const LayerNormOptions& options,
                 SourceLine at) {
  Call call(at, "layerNorm",
            {{"x", x, Takes::kFloats}, {"gamma", gamma, Takes::kFloats}, {"beta", beta, Takes::kFloats}});
  Shape dims = options.dims;
  if (!call.ok() || !call.isFrom(0, kLargest, "epsilon", options.epsilon) || !countFromStart(call, x, dims)) {
    return call.undefined();
  }
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (dims.empty() || dims == Shape{rank - 1}) {
    NamedAttrList attrs;
    attrs.set("epsilon", call.builder().getF64FloatAttr(options.epsilon));
    return call.make("layer_norm", attrs);
  }
  const Shape normalized = sizesOf(x.shape(), dims);
  if (std::set<int64_t>(dims.begin(), dims.end()).size() < dims.size() || gamma.shape() != normalized ||
      beta.shape() != normalized) {
    return call.fail(absl::StrCat("dims [", absl::StrJoin(options.dims, ", "), "] of x, which is ", describe(x),
                                  ", with gamma ", describe(gamma), " and beta ", describe(beta),
                                  "; name each dimension once, and give gamma and beta their sizes, [",
                                  absl::StrJoin(normalized, ", "), "]"));
  }
  // As one last dimension; splits of the others stay where they are.
  Shape order;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      order.push_back(dim);
    }
  }
  Shape rows = sizesOf(x.shape(), order);
  const int64_t width = elementsOf(normalized);
  rows.push_back(width);
  order.insert(order.end(), dims.begin(), dims.end());
  Shape back(rank);
  for (int64_t dim = 0; dim < rank; ++dim) {
    back[order[dim]] = dim;
  }
  const Tensor last = transpose(x, order, at);
  const Tensor y = layerNorm(reshape(last, rows, at), reshape(gamma, {width}, at), reshape(beta, {width}, at),
                             {.epsilon = options.epsilon}, at);
  return transpose(reshape(y, last.shape(), at), back, at);
}

// From operators that exist: the two means become partial sums over the ranks that split the batch, and are reduced as
// any other.
namespace {

// x, gamma, beta and, where they are given, the running statistics.
std::vector<NamedOperand> normOperands(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                       const RunningStatistics& running, bool needsRunning) {
  std::vector<NamedOperand> operands = {
      {"x", x, Takes::kFloats}, {"gamma", gamma, Takes::kFloats}, {"beta", beta, Takes::kFloats}};
  if (needsRunning || running.mean.graph() != nullptr || running.variance.graph() != nullptr) {
    operands.push_back({"running.mean", running.mean, Takes::kFloats});
    operands.push_back({"running.variance", running.variance, Takes::kFloats});
  }
  return operands;
}

// Shapes fit: x [n, c, ...], all others [c].
bool fitsChannels(Call& call, const std::vector<NamedOperand>& operands) {
  const Tensor& x = operands[0].tensor;
  std::string shapes = absl::StrCat("x [", absl::StrJoin(x.shape(), ","), "]");
  bool fits = x.shape().size() >= 2;
  for (size_t i = 1; i < operands.size(); ++i) {
    const Shape shape = operands[i].tensor.shape();
    absl::StrAppend(&shapes, i == 1 ? " with " : " and ", operands[i].name, " [", absl::StrJoin(shape, ","), "]");
    fits = fits && shape == Shape{x.dim(1)};
  }
  if (!fits) {
    call.fail(shapes + ": x needs dimensions [n, c, ...], the others are [c]");
  }
  return fits;
}

}  // namespace

Tensor batchNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, SourceLine at) {
  return batchNorm(x, gamma, beta, RunningStatistics{}, epsilon, at);
}

Tensor batchNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const RunningStatistics& running,
                 double epsilon, SourceLine at) {
  const std::vector<NamedOperand> operands = normOperands(x, gamma, beta, running, false);
  Call call(at, "batchNorm", operands);
  if (!call.ok() || !fitsChannels(call, operands) || !call.isFrom(0, kLargest, "epsilon", epsilon) ||
      !call.isFrom(0, 1, "running.momentum", running.momentum)) {
    return call.undefined();
  }
  GraphImpl* graph = call.graph();
  NamedAttrList attrs;
  attrs.set("epsilon", graph->builder.getF64FloatAttr(epsilon));
  attrs.set("momentum", graph->builder.getF64FloatAttr(running.momentum));
  const std::vector<Tensor> results = call.makeAll("batch_norm", attrs);
  if (results.size() == 6) {
    graph->assign(at, running.mean, results[4]);
    graph->assign(at, running.variance, results[5]);
  }
  return results[0];
}

Tensor normalize(const Tensor& x, const Tensor& gamma, const Tensor& beta, const RunningStatistics& running,
                 double epsilon, SourceLine at) {
  const std::vector<NamedOperand> operands = normOperands(x, gamma, beta, running, true);
  Call call(at, "normalize", operands);
  if (!call.ok() || !fitsChannels(call, operands) || !call.isFrom(0, kLargest, "epsilon", epsilon)) {
    return call.undefined();
  }
  Shape perChannel(x.shape().size() - 1, 1);
  perChannel[0] = x.dim(1);
  const Tensor scale = mul(rsqrt(add(running.variance, epsilon, at), at), gamma, at);
  const Tensor shift = sub(beta, mul(running.mean, scale, at), at);
  return add(mul(x, reshape(scale, perChannel, at), at), reshape(shift, perChannel, at), at);
}

Tensor embedding(const Tensor& table, const Tensor& ids, SourceLine at) {
  Call call(at, "embedding", {{"table", table, Takes::kFloats}, {"ids", ids, Takes::kIds, "row numbers"}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("rows", call.builder().getI64IntegerAttr(table.dim(0)));
  return call.make("embedding", attrs);
}

Tensor softmaxCrossEntropy(const Tensor& logits, const Tensor& labels, int64_t ignoreIndex, SourceLine at) {
  Call call(at, "softmaxCrossEntropy",
            {{"logits", logits, Takes::kFloats}, {"labels", labels, Takes::kIds, "class numbers"}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("ignore_index", call.builder().getI64IntegerAttr(ignoreIndex));
  attrs.set("rows", call.builder().getI64IntegerAttr(logits.dim(-1)));
  return call.make("softmax_cross_entropy", attrs);
}

Tensor meanValid(const Tensor& loss, const Tensor& labels, int64_t ignoreIndex, SourceLine at) {
  Call call(at, "meanValid", {{"loss", loss, Takes::kFloats}, {"labels", labels, Takes::kIds, "class numbers"}});
  if (!call.ok()) {
    return call.undefined();
  }
  if (loss.shape() != labels.shape()) {
    return call.fail(absl::StrCat("operand loss is ", describe(loss), " and operand labels ", describe(labels),
                                  "; there is one loss for each label"));
  }
  const Tensor valid = compare(labels, ignoreIndex, "ne", at);
  const Tensor count = sum(cast(valid, loss.type(), at), {}, false, at);
  return div(sum(loss, {}, false, at), maximum(count, 1, at), at);
}

Tensor dropout(const Tensor& x, double rate, int64_t seed, SourceLine at) {
  Call checked(at, "dropout", {{"x", x, Takes::kFloats}});
  if (!checked.ok()) {
    return checked.undefined();
  }
  if (rate == 0) {
    return x;
  }
  GraphImpl* graph = checked.graph();
  Tensor step = graph->findArgument("step");
  if (step.id() < 0) {
    NamedAttrList init;
    init.set("distribution", graph->builder.getStringAttr("constant"));
    init.set("a", graph->builder.getF64FloatAttr(0.0));
    init.set("b", graph->builder.getF64FloatAttr(0.0));
    NamedAttrList attrs;
    attrs.set(kKindAttr, graph->builder.getStringAttr("state"));
    attrs.set(kInitAttr, init.getDictionary(&graph->context));
    step = graph->addArgument(at, "step", {}, Type::kI32, attrs);
  }
  NamedAttrList attrs;
  attrs.set("rate", graph->builder.getF64FloatAttr(rate));
  attrs.set("seed", graph->builder.getI64IntegerAttr(seed));
  attrs.set("key", graph->builder.getI64IntegerAttr(0x10000000 + graph->dropouts++));
  Call call(at, "dropout", {{"x", x, Takes::kFloats}, {"step", step, Takes::kIds, "step counts"}});
  return call.ok() ? call.make("dropout", attrs) : call.undefined();
}

Tensor constrain(const Tensor& x, const std::string& layout, SourceLine at) {
  Call call(at, "constrain", {{"x", x}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("layout", call.builder().getStringAttr(layout));
  return call.make("constrain", attrs);
}

Tensor stopGradient(const Tensor& x, SourceLine at) {
  Call call(at, "stopGradient", {{"x", x}});
  return call.ok() ? call.make("stop_gradient") : call.undefined();
}

std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, SourceLine at) {
  std::vector<NamedOperand> operands = {{"y", y, Takes::kFloats}};
  for (const Tensor& x : xs) {
    operands.push_back({"of xs", x, Takes::kFloats});
  }
  Call call(at, "grad", std::move(operands));
  if (!call.ok()) {
    return std::vector<Tensor>(xs.size(), call.graph() == nullptr ? Tensor() : call.undefined());
  }
  if (!y.shape().empty()) {
    const Tensor none =
        call.fail(absl::StrCat("y is ", describe(y), "; a scalar is differentiated: take its sum or mean"));
    return std::vector<Tensor>(xs.size(), none);
  }
  llvm::SmallVector<mlir::Type> types;
  for (const Tensor& x : xs) {
    types.push_back(y.graph()->value(x).getType());
  }
  return xs.empty() ? std::vector<Tensor>() : call.makeAll("gradient", {}, types);
}

Tensor inspect(const Tensor& x, const std::string& name, SourceLine at) {
  if (Call(at, "inspect", {{"x", x}}).ok()) {
    x.graph()->addOutput(at, name, x);
  }
  return x;
}

}  // namespace weft
