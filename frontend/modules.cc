#include "weft/modules.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"
#include "weft/key_value_cache.h"

namespace weft::nn {

Scope Module::stageScope(const Tensor& x) const {
  GraphImpl* const graph = stage_.has_value() ? x.graph() : nullptr;
  if (graph != nullptr) {
    graph->stages.push_back(*stage_);
  }
  return Scope(graph, Scope::Kind::kStage);
}

Scope Module::callScope(const Tensor& x, const std::string& module) const {
  if (x.graph() != nullptr) {
    x.graph()->modules.push_back("nn::" + module);
  }
  return Scope(x.graph(), Scope::Kind::kModule);
}

Linear::Linear(Graph& g, const std::string& name, int64_t in, int64_t out, const LinearSettings& settings,
               SourceLine at)
    : weight(g.parameter(name + ".weight", {in, out}, settings.init, {}, at)), name_(name) {
  if (settings.bias) {
    bias = g.parameter(name + ".bias", {out}, Init::zeros(), {}, at);
  }
}

Tensor Linear::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Linear");
  const Tensor y = matmul(x, weight, {}, at).named(name_);
  return bias.graph() == nullptr ? y : add(y, bias, at);
}

Embedding::Embedding(Graph& g, const std::string& name, int64_t rows, int64_t width, const Init& init, SourceLine at)
    : weight(g.parameter(name, {rows, width}, init, {}, at)) {}

Tensor Embedding::operator()(const Tensor& ids, SourceLine at) const {
  const Scope stage = stageScope(ids);
  const Scope call = callScope(ids, "Embedding");
  return embedding(weight, ids, at);
}

LayerNorm::LayerNorm(Graph& g, const std::string& name, int64_t width, double epsilon, SourceLine at)
    : weight(g.parameter(name + ".weight", {width}, Init::ones(), {}, at)),
      bias(g.parameter(name + ".bias", {width}, Init::zeros(), {}, at)),
      epsilon_(epsilon) {}

Tensor LayerNorm::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "LayerNorm");
  return layerNorm(x, weight, bias, {.epsilon = epsilon_}, at);
}

RmsNorm::RmsNorm(Graph& g, const std::string& name, int64_t width, double epsilon, SourceLine at)
    : weight(g.parameter(name + ".weight", {width}, Init::ones(), {}, at)), epsilon_(epsilon) {}

Tensor RmsNorm::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "RmsNorm");
  return rmsNorm(x, weight, epsilon_, at);
}

Tensor splitHeads(const Tensor& x, int64_t heads, SourceLine at) {
  if (x.valid() && (x.shape().size() != 3 || heads < 1 || x.dim(2) % heads != 0)) {
    return x.graph()->fail(at, absl::StrCat("splitHeads: x is ", describe(x), " and heads ", heads,
                                            "; it needs [batch, rows, width] with a width that the heads divide"));
  }
  const Tensor apart = reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / std::max<int64_t>(heads, 1)}, at);
  return transpose(apart, {0, 2, 1, 3}, at);
}

Tensor mergeHeads(const Tensor& x, SourceLine at) {
  if (x.valid() && x.shape().size() != 4) {
    return x.graph()->fail(at,
                           absl::StrCat("mergeHeads: x is ", describe(x), "; it needs [batch, heads, rows, width]"));
  }
  return reshape(transpose(x, {0, 2, 1, 3}, at), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}, at);
}

Init heNormal(int64_t fanIn) {
  return Init::normal(std::sqrt(2.0 / static_cast<double>(fanIn)));
}

Conv2d::Conv2d(Graph& g, const std::string& name, int64_t in, int64_t out, int64_t kernel,
               const Conv2dSettings& settings, SourceLine at)
    : weight(g.parameter(name + ".weight", {out, in / std::max<int64_t>(settings.groups, 1), kernel, kernel},
                         settings.init.value_or(heNormal(in / std::max<int64_t>(settings.groups, 1) * kernel * kernel)),
                         {}, at)),
      name_(name),
      settings_(settings) {
  if (settings.bias) {
    bias = g.parameter(name + ".bias", {out}, Init::zeros(), {}, at);
  }
}

Tensor Conv2d::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Conv2d");
  const Conv2dOptions options = {.strides = {settings_.stride, settings_.stride},
                                 .paddings = {settings_.padding, settings_.padding},
                                 .dilations = {settings_.dilation, settings_.dilation},
                                 .groups = settings_.groups};
  const Tensor y = conv2d(x, weight, options, at).named(name_);
  return settings_.bias ? add(y, reshape(bias, {weight.dim(0), 1, 1}, at), at) : y;
}

GroupNorm::GroupNorm(Graph& g, const std::string& name, int64_t groups, int64_t channels, double epsilon, SourceLine at)
    : weight(g.parameter(name + ".weight", {channels}, Init::ones(), {}, at)),
      bias(g.parameter(name + ".bias", {channels}, Init::zeros(), {}, at)),
      groups_(groups),
      epsilon_(epsilon) {}

Tensor GroupNorm::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "GroupNorm");
  return groupNorm(x, groups_, weight, bias, epsilon_, at);
}

BatchNorm2d::BatchNorm2d(Graph& g, const std::string& name, int64_t channels, const BatchNormSettings& settings,
                         SourceLine at)
    : weight(g.parameter(name + ".weight", {channels}, Init::ones(), {}, at)),
      bias(g.parameter(name + ".bias", {channels}, Init::zeros(), {}, at)),
      settings_(settings) {
  const std::string scoped = g.impl()->scoped(name);
  running.mean = g.state(scoped + ".running_mean", {channels}, weight.type(), 0, at);
  running.variance = g.state(scoped + ".running_var", {channels}, weight.type(), 1, at);
  running.momentum = settings.momentum;
}

Tensor BatchNorm2d::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "BatchNorm2d");
  return settings_.training ? batchNorm(x, weight, bias, running, settings_.epsilon, at)
                            : normalize(x, weight, bias, running, settings_.epsilon, at);
}

namespace {

Pool2dOptions poolOptions(int64_t window, const PoolSettings& settings) {
  const int64_t stride = settings.stride == 0 ? window : settings.stride;
  return {.strides = {stride, stride}, .paddings = {settings.padding, settings.padding}};
}

}  // namespace

Tensor MaxPool2d::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "MaxPool2d");
  return maxPool2d(x, {window_, window_}, poolOptions(window_, settings_), at);
}

Tensor AvgPool2d::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "AvgPool2d");
  return avgPool2d(x, {window_, window_}, poolOptions(window_, settings_), at);
}

Attention::Attention(Graph& g, int64_t width, int64_t heads, const Init& init, SourceLine at)
    : g_(g),
      qkvWeight_(g.parameter("qkv.weight", {width, 3, width}, init, {.fileShape = {width, 3 * width}}, at)),
      qkvBias_(g.parameter("qkv.bias", {3, width}, Init::zeros(), {.fileShape = {3 * width}}, at)),
      projWeight_(g.parameter("proj.weight", {width, width}, init, {}, at)),
      projBias_(g.parameter("proj.bias", {width}, Init::zeros(), {}, at)),
      heads_(heads) {}

Tensor Attention::operator()(const Tensor& x, const Parallel& parallel, SourceLine at) const {
  return attend(x, nullptr, parallel, at);
}

Tensor Attention::step(const Tensor& x, const Decoding& decoding, const Parallel& parallel, SourceLine at) const {
  return attend(x, &decoding, parallel, at);
}

Tensor Attention::attend(const Tensor& x, const Decoding* decoding, const Parallel& parallel, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Attention");
  const int64_t width = projWeight_.dim(0);
  if (x.valid() && (x.shape().size() != 3 || x.dim(2) != width)) {
    return x.graph()->fail(
        at, absl::StrCat("x is ", describe(x), "; it should be [batch, rows, ", width, "], as the parameters are"));
  }
  if (x.valid() && (heads_ < 1 || width % heads_ != 0)) {
    return x.graph()->fail(
        at, absl::StrCat("width ", width, " is not a multiple of ", heads_, " heads; take another number"));
  }
  const int64_t batch = x.dim(0);
  const int64_t rows = x.dim(1);
  Tensor qkv = einsum("btc,cqn->btqn", x, qkvWeight_, at).named("qkv");
  if (parallel.any()) {
    qkv = qkv.shard({{parallel.data, "", ""}, {"", "", parallel.model}}, {}, at);
  }
  qkv = add(qkv, qkvBias_, at);
  const auto part = [&](int64_t index) {
    const Tensor third = slice(qkv, {0, 0, index, 0}, {batch, rows, 1, width}, at);
    return transpose(reshape(third, {batch, rows, heads_, width / heads_}, at), {0, 2, 1, 3}, at);
  };
  Tensor mixed;
  if (decoding == nullptr) {
    mixed = scaledDotProductAttention(part(0), part(1), part(2), {.causal = true}, at);
  } else {
    const Shape cache = {batch, heads_, decoding->seen.dim(0), width / heads_};
    const Cached seen = KeyValueCache(g_, "cache", cache, x.type(), at)(part(1), part(2), *decoding, at);
    mixed = scaledDotProductAttention(part(0), seen.keys, seen.values, {.mask = decoding->seen}, at);
  }
  Tensor projected = matmul(mergeHeads(mixed, at), projWeight_, {}, at).named("proj");
  if (parallel.any()) {
    projected = projected.shard({{parallel.data, "", parallel.model}, {parallel.model, ""}}, {}, at);
  }
  if (parallel.any() && parallel.sequence) {
    projected = constrain(projected, "[{" + parallel.data + "},{" + parallel.model + "},{}]", at);
  }
  return add(projected, projBias_, at);
}

Mlp::Mlp(Graph& g, int64_t width, int64_t hidden, const Init& init, SourceLine at)
    : fcWeight_(g.parameter("fc.weight", {width, hidden}, init, {}, at)),
      fcBias_(g.parameter("fc.bias", {hidden}, Init::zeros(), {}, at)),
      outWeight_(g.parameter("out.weight", {hidden, width}, init, {}, at)),
      outBias_(g.parameter("out.bias", {width}, Init::zeros(), {}, at)) {}

Tensor Mlp::operator()(const Tensor& x, const Parallel& parallel, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Mlp");
  Tensor hidden = matmul(x, fcWeight_, {}, at).named("fc");
  if (parallel.any()) {
    hidden = hidden.shard({{parallel.data, "", ""}, {"", parallel.model}}, {}, at);
  }
  hidden = gelu(add(hidden, fcBias_, at), Gelu::kTanh, at);
  Tensor result = matmul(hidden, outWeight_, {}, at).named("out");
  if (parallel.any()) {
    result = result.shard({{parallel.data, "", parallel.model}, {parallel.model, ""}}, {}, at);
  }
  if (parallel.any() && parallel.sequence) {
    result = constrain(result, "[{" + parallel.data + "},{" + parallel.model + "},{}]", at);
  }
  return add(result, outBias_, at);
}

namespace {

// Parts of a block are made with the block's name in scope.
template <typename Make>
auto inScope(Graph& g, const std::string& name, const Make& make) {
  const Scope scope = g.scope(name);
  return make();
}

}  // namespace

TransformerBlock::TransformerBlock(Graph& g, const std::string& name, int64_t width, int64_t heads, const Init& init,
                                   SourceLine at)
    : g_(g),
      name_(name),
      ln1_(inScope(g, name, [&] { return LayerNorm(g, "ln1", width, 1e-5, at); })),
      attention_(inScope(g, name, [&] { return Attention(g, width, heads, init, at); })),
      ln2_(inScope(g, name, [&] { return LayerNorm(g, "ln2", width, 1e-5, at); })),
      mlp_(inScope(g, name, [&] { return Mlp(g, width, 4 * width, init, at); })) {}

Tensor TransformerBlock::operator()(const Tensor& x, const Parallel& parallel, double rate, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "TransformerBlock");
  const Scope scope = g_.scope(name_);
  const auto drop = [&](const Tensor& value) { return rate > 0 ? dropout(value, rate, 0, at) : value; };
  const Tensor middle = add(x, drop(attention_(ln1_(x, at), parallel, at)), at);
  return add(middle, drop(mlp_(ln2_(middle, at), parallel, at)), at);
}

Tensor TransformerBlock::step(const Tensor& x, const Decoding& decoding, const Parallel& parallel,
                              SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "TransformerBlock");
  const Scope scope = g_.scope(name_);
  const Tensor middle = add(x, attention_.step(ln1_(x, at), decoding, parallel, at), at);
  return add(middle, mlp_(ln2_(middle, at), parallel, at), at);
}

}  // namespace weft::nn
