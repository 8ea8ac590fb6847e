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

Tensor Module::named(const Tensor& product, const std::string& name) {
  if (product.valid()) {
    product.graph()->setName(product, name);
  }
  return product;
}

int stageOf(int64_t part, int64_t parts, int64_t stages) {
  return static_cast<int>(part * stages / std::max<int64_t>(parts, 1));
}

namespace {

// A bias of `width` elements, or none.
Tensor biasOf(Graph& g, const std::string& name, int64_t width, bool wanted, const Init& init, SourceLine at) {
  return wanted ? g.parameter(name + ".bias", {width}, init, {}, at) : Tensor();
}

// For norms, which always add one.
Tensor orZeros(const Tensor& bias, const Tensor& weight, SourceLine at) {
  return bias.graph() == nullptr ? broadcastTo(scalarLike(weight, 0.0, "bias", at), weight.shape(), at) : bias;
}

// Images y + bias, which has one element for each channel.
Tensor withBias(const Tensor& y, const Tensor& bias, SourceLine at) {
  return bias.graph() == nullptr ? y : add(y, reshape(bias, {bias.dim(0), 1, 1}, at), at);
}

}  // namespace

Linear::Linear(Graph& g, const std::string& name, int64_t in, int64_t out, const LinearSettings& settings,
               SourceLine at)
    : weight(g.parameter(name + ".weight", {in, out}, settings.init, {}, at)),
      bias(biasOf(g, name, out, settings.bias, settings.biasInit, at)),
      name_(g.impl()->scoped(name)) {}

Tensor Linear::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Linear");
  const Tensor y = named(matmul(x, weight, {}, at), name_);
  return bias.graph() == nullptr ? y : add(y, bias, at);
}

Embedding::Embedding(Graph& g, const std::string& name, int64_t rows, int64_t width, const EmbeddingSettings& settings,
                     SourceLine at)
    : weight(g.parameter(name, {rows, width}, settings.init, {}, at)), name_(g.impl()->scoped(name)) {}

Tensor Embedding::operator()(const Tensor& ids, SourceLine at) const {
  const Scope stage = stageScope(ids);
  const Scope call = callScope(ids, "Embedding");
  return named(embedding(weight, ids, at), name_);
}

LayerNorm::LayerNorm(Graph& g, const std::string& name, int64_t width, const LayerNormSettings& settings, SourceLine at)
    : weight(g.parameter(name + ".weight", {width}, settings.init, {}, at)),
      bias(biasOf(g, name, width, settings.bias, settings.biasInit, at)),
      epsilon_(settings.epsilon) {}

Tensor LayerNorm::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "LayerNorm");
  return layerNorm(x, weight, orZeros(bias, weight, at), {.epsilon = epsilon_}, at);
}

RmsNorm::RmsNorm(Graph& g, const std::string& name, int64_t width, const RmsNormSettings& settings, SourceLine at)
    : weight(g.parameter(name + ".weight", {width}, settings.init, {}, at)), epsilon_(settings.epsilon) {}

Tensor RmsNorm::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "RmsNorm");
  return rmsNorm(x, weight, epsilon_, at);
}

Tensor Dropout::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Dropout");
  return dropout(x, rate_, seed_, at);
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

namespace {

// Channels that one element of a convolution's result reads.
int64_t perGroup(int64_t channels, int64_t groups) {
  return channels / std::max<int64_t>(groups, 1);
}

}  // namespace

Conv2d::Conv2d(Graph& g, const std::string& name, int64_t in, int64_t out, int64_t kernel,
               const Conv2dSettings& settings, SourceLine at)
    : weight(g.parameter(name + ".weight", {out, perGroup(in, settings.groups), kernel, kernel},
                         settings.init.value_or(heNormal(perGroup(in, settings.groups) * kernel * kernel)), {}, at)),
      bias(biasOf(g, name, out, settings.bias, settings.biasInit, at)),
      name_(g.impl()->scoped(name)),
      settings_(settings) {}

Tensor Conv2d::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Conv2d");
  const Conv2dOptions options = {.strides = {settings_.stride, settings_.stride},
                                 .paddings = {settings_.padding, settings_.padding},
                                 .dilations = {settings_.dilation, settings_.dilation},
                                 .groups = settings_.groups};
  return withBias(named(conv2d(x, weight, options, at), name_), bias, at);
}

ConvTranspose2d::ConvTranspose2d(Graph& g, const std::string& name, int64_t in, int64_t out, int64_t kernel,
                                 const ConvTranspose2dSettings& settings, SourceLine at)
    : weight(g.parameter(name + ".weight", {in, perGroup(out, settings.groups), kernel, kernel},
                         settings.init.value_or(heNormal(perGroup(in, settings.groups) * kernel * kernel)), {}, at)),
      bias(biasOf(g, name, out, settings.bias, settings.biasInit, at)),
      name_(g.impl()->scoped(name)),
      settings_(settings) {}

Tensor ConvTranspose2d::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "ConvTranspose2d");
  const ConvTranspose2dOptions options = {.strides = {settings_.stride, settings_.stride},
                                          .paddings = {settings_.padding, settings_.padding},
                                          .outputPaddings = {settings_.outputPadding, settings_.outputPadding},
                                          .dilations = {settings_.dilation, settings_.dilation},
                                          .groups = settings_.groups};
  return withBias(named(convTranspose2d(x, weight, options, at), name_), bias, at);
}

GroupNorm::GroupNorm(Graph& g, const std::string& name, int64_t groups, int64_t channels,
                     const GroupNormSettings& settings, SourceLine at)
    : weight(g.parameter(name + ".weight", {channels}, settings.init, {}, at)),
      bias(biasOf(g, name, channels, settings.bias, settings.biasInit, at)),
      groups_(groups),
      epsilon_(settings.epsilon) {}

Tensor GroupNorm::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "GroupNorm");
  return groupNorm(x, groups_, weight, orZeros(bias, weight, at), epsilon_, at);
}

BatchNorm2d::BatchNorm2d(Graph& g, const std::string& name, int64_t channels, const BatchNormSettings& settings,
                         SourceLine at)
    : weight(g.parameter(name + ".weight", {channels}, settings.init, {}, at)),
      bias(g.parameter(name + ".bias", {channels}, settings.biasInit, {}, at)),
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

Attention::Attention(Graph& g, int64_t width, int64_t heads, const AttentionSettings& settings, SourceLine at)
    : g_(g),
      qkvName_(g.impl()->scoped("qkv")),
      qkvWeight_(g.parameter("qkv.weight", {width, 3, width}, settings.init, {.fileShape = {width, 3 * width}}, at)),
      qkvBias_(settings.bias ? g.parameter("qkv.bias", {3, width}, settings.biasInit, {.fileShape = {3 * width}}, at)
                             : Tensor()),
      proj_(g, "proj", width, width,
            {.init = settings.projInit.value_or(settings.init), .bias = settings.bias, .biasInit = settings.biasInit},
            at),
      heads_(heads),
      dropout_(settings.dropout) {}

Tensor Attention::operator()(const Tensor& x, SourceLine at) const {
  return attend(x, nullptr, at);
}

Tensor Attention::step(const Tensor& x, const Decoding& decoding, SourceLine at) const {
  return attend(x, &decoding, at);
}

Tensor Attention::attend(const Tensor& x, const Decoding* decoding, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Attention");
  const int64_t width = proj_.weight.dim(0);
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
  Tensor qkv = named(einsum("btc,cqn->btqn", x, qkvWeight_, at), qkvName_);
  qkv = qkvBias_.graph() == nullptr ? qkv : add(qkv, qkvBias_, at);
  const auto part = [&](int64_t index) {
    const Tensor third = slice(qkv, {0, 0, index, 0}, {batch, rows, 1, width}, at);
    return transpose(reshape(third, {batch, rows, heads_, width / heads_}, at), {0, 2, 1, 3}, at);
  };
  Tensor mixed;
  if (decoding == nullptr) {
    mixed = scaledDotProductAttention(part(0), part(1), part(2), {.causal = true, .dropout = dropout_}, at);
  } else {
    const Shape cache = {batch, heads_, decoding->seen.dim(0), width / heads_};
    const Cached seen = KeyValueCache(g_, "cache", cache, x.type(), at)(part(1), part(2), *decoding, at);
    mixed = scaledDotProductAttention(part(0), seen.keys, seen.values, {.mask = decoding->seen}, at);
  }
  return proj_(mergeHeads(mixed, at), at);
}

Mlp::Mlp(Graph& g, int64_t width, int64_t hidden, const MlpSettings& settings, SourceLine at)
    : fc_(g, "fc", width, hidden, {.init = settings.init, .bias = settings.bias, .biasInit = settings.biasInit}, at),
      out_(g, "out", hidden, width,
           {.init = settings.outInit.value_or(settings.init), .bias = settings.bias, .biasInit = settings.biasInit},
           at),
      form_(settings.form) {}

Tensor Mlp::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "Mlp");
  return out_(gelu(fc_(x, at), form_, at), at);
}

namespace {

// Parts of a block are made with the block's name in scope.
template <typename Make>
auto inScope(Graph& g, const std::string& name, const Make& make) {
  const Scope scope = g.scope(name);
  return make();
}

LayerNorm normOf(Graph& g, const std::string& name, int64_t width, const TransformerBlockSettings& settings,
                 SourceLine at) {
  return LayerNorm(g, name, width, {.epsilon = settings.epsilon, .bias = settings.bias}, at);
}

AttentionSettings attentionOf(const TransformerBlockSettings& settings) {
  return {.init = settings.init,
          .bias = settings.bias,
          .biasInit = settings.biasInit,
          .projInit = settings.outInit,
          .dropout = settings.attentionDropout};
}

MlpSettings mlpOf(const TransformerBlockSettings& settings) {
  return {.init = settings.init, .bias = settings.bias, .biasInit = settings.biasInit, .outInit = settings.outInit};
}

}  // namespace

TransformerBlock::TransformerBlock(Graph& g, const std::string& name, int64_t width, int64_t heads,
                                   const TransformerBlockSettings& settings, SourceLine at)
    : g_(g),
      name_(name),
      ln1_(inScope(g, name, [&] { return normOf(g, "ln1", width, settings, at); })),
      attention_(inScope(g, name, [&] { return Attention(g, width, heads, attentionOf(settings), at); })),
      ln2_(inScope(g, name, [&] { return normOf(g, "ln2", width, settings, at); })),
      mlp_(inScope(g, name, [&] { return Mlp(g, width, settings.hidden.value_or(4 * width), mlpOf(settings), at); })),
      dropout_(settings.dropout) {}

Tensor TransformerBlock::operator()(const Tensor& x, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "TransformerBlock");
  const Scope scope = g_.scope(name_);
  const Tensor middle = add(x, dropout(attention_(ln1_(x, at), at), dropout_, 0, at), at);
  return add(middle, dropout(mlp_(ln2_(middle, at), at), dropout_, 0, at), at);
}

Tensor TransformerBlock::step(const Tensor& x, const Decoding& decoding, SourceLine at) const {
  const Scope stage = stageScope(x);
  const Scope call = callScope(x, "TransformerBlock");
  const Scope scope = g_.scope(name_);
  const Tensor middle = add(x, attention_.step(ln1_(x, at), decoding, at), at);
  return add(middle, mlp_(ln2_(middle, at), at), at);
}

}  // namespace weft::nn
