#include "weft/ops.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph_impl.h"

namespace weft {

using mlir::NamedAttrList;
using mlir::RankedTensorType;

namespace {

// The graph of the first operand that has one; calls on tensors without a graph give a tensor without a graph.
GraphImpl* graphOf(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.graph() != nullptr) {
      return tensor.graph();
    }
  }
  return nullptr;
}

// An operator on operands that an earlier error left undefined adds no error of its own.
bool usable(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.graph() != nullptr && tensor.id() < 0 && !tensor.graph()->status.ok()) {
      return false;
    }
  }
  return graphOf(tensors) != nullptr;
}

Tensor make(SourceLine at, const std::string& mnemonic, const std::vector<Tensor>& operands,
            const NamedAttrList& attributes = {}, mlir::TypeRange results = {}) {
  if (!usable(operands)) {
    return Tensor(graphOf(operands), -1);
  }
  return graphOf(operands)->create(at, mnemonic, operands, attributes, results);
}

SourceLine lineOf(const Tensor& tensor) {
  return tensor.valid() ? tensor.graph()->lineOf(tensor) : SourceLine();
}

Tensor scalarLike(const Tensor& x, double value, SourceLine at) {
  if (!x.valid()) {
    return x;
  }
  NamedAttrList attrs;
  attrs.set("value", x.graph()->builder.getF64FloatAttr(value));
  const mlir::Type type = RankedTensorType::get({}, x.graph()->elementType(x.type()));
  return x.graph()->create(at, "fill", {}, attrs, type);
}

// Operators of one more result than the caller sees.
Tensor makeFirst(SourceLine at, const std::string& mnemonic, const std::vector<Tensor>& operands,
                 const NamedAttrList& attributes) {
  if (!usable(operands)) {
    return Tensor(graphOf(operands), -1);
  }
  return graphOf(operands)->createAll(at, mnemonic, operands, attributes).front();
}

Tensor reduce(const std::string& mnemonic, const Tensor& x, Shape dims, bool keepDims, SourceLine at) {
  if (!x.valid()) {
    return x;
  }
  const Shape shape = x.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  if (dims.empty()) {
    for (int64_t d = 0; d < rank; ++d) {
      dims.push_back(d);
    }
  }
  int64_t count = 1;
  for (int64_t& dim : dims) {
    dim += dim < 0 ? rank : 0;
    if (dim < 0 || dim >= rank) {
      return x.graph()->fail(
          at, absl::StrCat(mnemonic, " over dimension ", dim, " of a tensor with ", rank, " dimensions"));
    }
    count *= shape[dim];
  }
  mlir::OpBuilder& builder = x.graph()->builder;
  NamedAttrList attrs;
  attrs.set("dims", builder.getDenseI64ArrayAttr(dims));
  attrs.set("keep_dims", builder.getBoolAttr(keepDims));
  if (mnemonic == "mean") {
    attrs.set("count", builder.getI64IntegerAttr(count));
  }
  return make(at, mnemonic, {x}, attrs);
}

Tensor pool(const std::string& mnemonic, const Tensor& x, const Shape& window, const Pool2dOptions& options,
            SourceLine at) {
  if (!usable({x})) {
    return x;
  }
  mlir::OpBuilder& builder = x.graph()->builder;
  NamedAttrList attrs;
  attrs.set("window", builder.getDenseI64ArrayAttr(window));
  attrs.set("strides", builder.getDenseI64ArrayAttr(options.strides.empty() ? window : options.strides));
  attrs.set("paddings", builder.getDenseI64ArrayAttr(options.paddings));
  return make(at, mnemonic, {x}, attrs);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, SourceLine at) {
  return make(at, "add", {a, b});
}
Tensor sub(const Tensor& a, const Tensor& b, SourceLine at) {
  return make(at, "sub", {a, b});
}
Tensor mul(const Tensor& a, const Tensor& b, SourceLine at) {
  return make(at, "mul", {a, b});
}
Tensor div(const Tensor& a, const Tensor& b, SourceLine at) {
  return make(at, "div", {a, b});
}
Tensor maximum(const Tensor& a, const Tensor& b, SourceLine at) {
  return make(at, "maximum", {a, b});
}
Tensor minimum(const Tensor& a, const Tensor& b, SourceLine at) {
  return make(at, "minimum", {a, b});
}
Tensor add(const Tensor& a, double b, SourceLine at) {
  return make(at, "add", {a, scalarLike(a, b, at)});
}
Tensor mul(const Tensor& a, double b, SourceLine at) {
  return make(at, "mul", {a, scalarLike(a, b, at)});
}
Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b, lineOf(a));
}
Tensor operator-(const Tensor& a, const Tensor& b) {
  return sub(a, b, lineOf(a));
}
Tensor operator*(const Tensor& a, const Tensor& b) {
  return mul(a, b, lineOf(a));
}
Tensor operator/(const Tensor& a, const Tensor& b) {
  return div(a, b, lineOf(a));
}
Tensor operator*(const Tensor& a, double b) {
  return mul(a, b, lineOf(a));
}

Tensor compare(const Tensor& a, const Tensor& b, const std::string& predicate, SourceLine at) {
  if (!usable({a, b})) {
    return Tensor(graphOf({a, b}), -1);
  }
  NamedAttrList attrs;
  attrs.set("predicate", graphOf({a, b})->builder.getStringAttr(predicate));
  return make(at, "compare", {a, b}, attrs);
}

Tensor select(const Tensor& condition, const Tensor& a, const Tensor& b, SourceLine at) {
  return make(at, "select", {condition, a, b});
}

Tensor neg(const Tensor& x, SourceLine at) {
  return make(at, "neg", {x});
}
Tensor exp(const Tensor& x, SourceLine at) {
  return make(at, "exp", {x});
}
Tensor log(const Tensor& x, SourceLine at) {
  return make(at, "log", {x});
}
Tensor sqrt(const Tensor& x, SourceLine at) {
  return make(at, "sqrt", {x});
}
Tensor rsqrt(const Tensor& x, SourceLine at) {
  return make(at, "rsqrt", {x});
}
Tensor tanh(const Tensor& x, SourceLine at) {
  return make(at, "tanh", {x});
}
Tensor relu(const Tensor& x, SourceLine at) {
  return make(at, "relu", {x});
}

Tensor gelu(const Tensor& x, Gelu form, SourceLine at) {
  if (!usable({x})) {
    return x;
  }
  NamedAttrList attrs;
  attrs.set("approximate", x.graph()->builder.getStringAttr(form == Gelu::kTanh ? "tanh" : "none"));
  return make(at, "gelu", {x}, attrs);
}

Tensor cast(const Tensor& x, Type type, SourceLine at) {
  if (!x.valid()) {
    return x;
  }
  const mlir::Type result = RankedTensorType::get(x.shape(), x.graph()->elementType(type));
  return make(at, "cast", {x}, {}, result);
}

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options, SourceLine at) {
  if (!usable({a, b})) {
    return Tensor(graphOf({a, b}), -1);
  }
  NamedAttrList attrs;
  attrs.set("transpose_a", graphOf({a, b})->builder.getBoolAttr(options.transposeA));
  attrs.set("transpose_b", graphOf({a, b})->builder.getBoolAttr(options.transposeB));
  return make(at, "matmul", {a, b}, attrs);
}

Tensor einsum(const std::string& spec, const Tensor& a, const Tensor& b, SourceLine at) {
  if (!usable({a, b})) {
    return Tensor(graphOf({a, b}), -1);
  }
  // "btk,kn->btn" to "b t k, k n -> b t n".
  std::string spaced;
  for (size_t i = 0; i < spec.size(); ++i) {
    if (spec[i] == ' ') {
      continue;
    }
    if (spec[i] == '-' && i + 1 < spec.size() && spec[i + 1] == '>') {
      spaced += " ->";
      ++i;
    } else if (spec[i] == ',') {
      spaced += ",";
    } else {
      spaced += (spaced.empty() ? "" : " ") + std::string(1, spec[i]);
    }
  }
  NamedAttrList attrs;
  attrs.set("spec", graphOf({a, b})->builder.getStringAttr(spaced));
  return make(at, "contract", {a, b}, attrs);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options, SourceLine at) {
  if (!usable({x, weight})) {
    return Tensor(graphOf({x, weight}), -1);
  }
  mlir::OpBuilder& builder = graphOf({x, weight})->builder;
  NamedAttrList attrs;
  attrs.set("strides", builder.getDenseI64ArrayAttr(options.strides));
  attrs.set("paddings", builder.getDenseI64ArrayAttr(options.paddings));
  return make(at, "conv2d", {x, weight}, attrs);
}

Tensor maxPool2d(const Tensor& x, const Shape& window, const Pool2dOptions& options, SourceLine at) {
  return pool("max_pool2d", x, window, options, at);
}

Tensor avgPool2d(const Tensor& x, const Shape& window, const Pool2dOptions& options, SourceLine at) {
  return pool("avg_pool2d", x, window, options, at);
}

Tensor reshape(const Tensor& x, const Shape& shape, SourceLine at) {
  if (!x.valid()) {
    return x;
  }
  int64_t elements = 1;
  for (const int64_t size : x.shape()) {
    elements *= size;
  }
  int64_t known = 1;
  int64_t open = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1 && open < 0) {
      open = static_cast<int64_t>(d);
    } else if (shape[d] < 1) {
      return x.graph()->fail(
          at, absl::StrCat("reshape to [", absl::StrJoin(shape, ","), "]: sizes are at least 1, one may be -1"));
    } else {
      known *= shape[d];
    }
  }
  Shape full = shape;
  if (open >= 0) {
    full[open] = elements / known;
    known *= full[open];
  }
  if (known != elements) {
    return x.graph()->fail(at, absl::StrCat("reshape of [", absl::StrJoin(x.shape(), ","), "] (", elements,
                                            " elements) to [", absl::StrJoin(shape, ","), "]"));
  }
  const mlir::Type result = RankedTensorType::get(full, x.graph()->elementType(x.type()));
  return make(at, "reshape", {x}, {}, result);
}

Tensor transpose(const Tensor& x, const Shape& permutation, SourceLine at) {
  if (!usable({x})) {
    return x;
  }
  NamedAttrList attrs;
  attrs.set("permutation", x.graph()->builder.getDenseI64ArrayAttr(permutation));
  return make(at, "transpose", {x}, attrs);
}

Tensor slice(const Tensor& x, const Shape& offsets, const Shape& sizes, SourceLine at) {
  if (!usable({x})) {
    return x;
  }
  NamedAttrList attrs;
  attrs.set("offsets", x.graph()->builder.getDenseI64ArrayAttr(offsets));
  attrs.set("sizes", x.graph()->builder.getDenseI64ArrayAttr(sizes));
  return make(at, "slice", {x}, attrs);
}

Tensor concat(const std::vector<Tensor>& xs, int dim, SourceLine at) {
  if (!usable(xs)) {
    return Tensor(graphOf(xs), -1);
  }
  NamedAttrList attrs;
  attrs.set("dim", graphOf(xs)->builder.getI64IntegerAttr(dim));
  return make(at, "concat", xs, attrs);
}

Tensor broadcastTo(const Tensor& x, const Shape& shape, SourceLine at) {
  if (!x.valid()) {
    return x;
  }
  const mlir::Type result = RankedTensorType::get(shape, x.graph()->elementType(x.type()));
  return make(at, "broadcast", {x}, {}, result);
}

Tensor sum(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce("sum", x, dims, keepDims, at);
}
Tensor mean(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce("mean", x, dims, keepDims, at);
}
Tensor max(const Tensor& x, const Shape& dims, bool keepDims, SourceLine at) {
  return reduce("max", x, dims, keepDims, at);
}

Tensor softmax(const Tensor& x, SourceLine at) {
  return make(at, "softmax", {x});
}

Tensor layerNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, SourceLine at) {
  if (!usable({x, gamma, beta})) {
    return Tensor(graphOf({x}), -1);
  }
  NamedAttrList attrs;
  attrs.set("epsilon", x.graph()->builder.getF64FloatAttr(epsilon));
  return makeFirst(at, "layer_norm", {x, gamma, beta}, attrs);
}

// From operators that exist: the two means become pending sums over the ranks that split the batch, and are reduced as
// any other.
namespace {

// Shapes fit: x [n, c, ...], all others [c].
bool fitsChannels(const Tensor& x, const std::vector<Tensor>& others) {
  return x.shape().size() >= 2 && std::all_of(others.begin(), others.end(),
                                              [&](const Tensor& other) { return other.shape() == Shape{x.dim(1)}; });
}

Tensor channelsDoNotFit(const std::string& what, const Tensor& x, const std::vector<Tensor>& others, SourceLine at) {
  const std::vector<const char*> names = {"gamma", "beta", "running mean", "running variance"};
  std::string text = absl::StrCat(what, " of x [", absl::StrJoin(x.shape(), ","), "]");
  for (size_t i = 0; i < others.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " with " : " and ", names[i], " [", absl::StrJoin(others[i].shape(), ","), "]");
  }
  return x.graph()->fail(at, text + ": x needs dimensions [n, c, ...], the others are [c]");
}

}  // namespace

Tensor batchNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, SourceLine at) {
  return batchNorm(x, gamma, beta, RunningStatistics{}, epsilon, at);
}

Tensor batchNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const RunningStatistics& running,
                 double epsilon, SourceLine at) {
  std::vector<Tensor> others = {gamma, beta};
  if (running.mean.valid() || running.variance.valid()) {
    others.insert(others.end(), {running.mean, running.variance});
  }
  std::vector<Tensor> operands = {x};
  operands.insert(operands.end(), others.begin(), others.end());
  if (!usable(operands)) {
    return Tensor(graphOf(operands), -1);
  }
  if (!fitsChannels(x, others)) {
    return channelsDoNotFit("batch norm", x, others, at);
  }
  GraphImpl* graph = x.graph();
  NamedAttrList attrs;
  attrs.set("epsilon", graph->builder.getF64FloatAttr(epsilon));
  attrs.set("momentum", graph->builder.getF64FloatAttr(running.momentum));
  const std::vector<Tensor> results = graph->createAll(at, "batch_norm", operands, attrs);
  if (results.size() == 5) {
    graph->assign(at, running.mean, results[3]);
    graph->assign(at, running.variance, results[4]);
  }
  return results.empty() ? Tensor(graph, -1) : results[0];
}

Tensor normalize(const Tensor& x, const Tensor& gamma, const Tensor& beta, const RunningStatistics& running,
                 double epsilon, SourceLine at) {
  const std::vector<Tensor> others = {gamma, beta, running.mean, running.variance};
  if (!usable({x, gamma, beta, running.mean, running.variance})) {
    return Tensor(graphOf({x, gamma, beta}), -1);
  }
  if (!fitsChannels(x, others)) {
    return channelsDoNotFit("normalisation", x, others, at);
  }
  Shape perChannel(x.shape().size() - 1, 1);
  perChannel[0] = x.dim(1);
  const Tensor scale = mul(rsqrt(add(running.variance, epsilon, at), at), gamma, at);
  const Tensor shift = sub(beta, mul(running.mean, scale, at), at);
  return add(mul(x, reshape(scale, perChannel, at), at), reshape(shift, perChannel, at), at);
}

Tensor embedding(const Tensor& table, const Tensor& ids, SourceLine at) {
  if (!usable({table, ids})) {
    return Tensor(graphOf({table}), -1);
  }
  NamedAttrList attrs;
  attrs.set("rows", table.graph()->builder.getI64IntegerAttr(table.dim(0)));
  return make(at, "embedding", {table, ids}, attrs);
}

Tensor softmaxCrossEntropy(const Tensor& logits, const Tensor& labels, int64_t ignoreIndex, SourceLine at) {
  if (!usable({logits, labels})) {
    return Tensor(graphOf({logits}), -1);
  }
  NamedAttrList attrs;
  attrs.set("ignore_index", logits.graph()->builder.getI64IntegerAttr(ignoreIndex));
  attrs.set("rows", logits.graph()->builder.getI64IntegerAttr(logits.dim(-1)));
  return makeFirst(at, "softmax_cross_entropy", {logits, labels}, attrs);
}

Tensor meanValid(const Tensor& loss, const Tensor& labels, int64_t ignoreIndex, SourceLine at) {
  const Tensor valid = compare(labels, scalarLike(labels, static_cast<double>(ignoreIndex), at), "ne", at);
  const Tensor count = sum(cast(valid, loss.type(), at), {}, false, at);
  return div(sum(loss, {}, false, at), maximum(count, scalarLike(loss, 1.0, at), at), at);
}

Tensor scaledDotProductAttention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                                 SourceLine at) {
  if (!usable({q, k, v})) {
    return Tensor(graphOf({q}), -1);
  }
  NamedAttrList attrs;
  const double scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(-1), 1))));
  attrs.set("causal", q.graph()->builder.getBoolAttr(options.causal));
  attrs.set("scale", q.graph()->builder.getF64FloatAttr(scale));
  return makeFirst(at, "attention", {q, k, v}, attrs);
}

Tensor dropout(const Tensor& x, double rate, int64_t seed, SourceLine at) {
  if (!x.valid()) {
    return x;
  }
  GraphImpl* graph = x.graph();
  Tensor step = graph->findArgument("step");
  if (step.id() < 0) {
    NamedAttrList init;
    init.set("distribution", graph->builder.getStringAttr("constant"));
    init.set("a", graph->builder.getF64FloatAttr(0.0));
    init.set("b", graph->builder.getF64FloatAttr(0.0));
    NamedAttrList attrs;
    attrs.set("nn.kind", graph->builder.getStringAttr("state"));
    attrs.set("nn.init", init.getDictionary(&graph->context));
    step = graph->addArgument(at, "step", {}, Type::kI32, attrs);
  }
  NamedAttrList attrs;
  attrs.set("rate", graph->builder.getF64FloatAttr(rate));
  attrs.set("seed", graph->builder.getI64IntegerAttr(seed));
  attrs.set("key", graph->builder.getI64IntegerAttr(0x10000000 + graph->dropouts++));
  return make(at, "dropout", {x, step}, attrs);
}

Tensor constrain(const Tensor& x, const std::string& layout, SourceLine at) {
  if (!usable({x})) {
    return x;
  }
  NamedAttrList attrs;
  attrs.set("layout", x.graph()->builder.getStringAttr(layout));
  return make(at, "constrain", {x}, attrs);
}

Tensor stopGradient(const Tensor& x, SourceLine at) {
  return make(at, "stop_gradient", {x});
}

Tensor inspect(const Tensor& x, const std::string& name, SourceLine at) {
  if (x.valid()) {
    x.graph()->outputs.emplace_back(name, x);
  }
  return x;
}

}  // namespace weft
