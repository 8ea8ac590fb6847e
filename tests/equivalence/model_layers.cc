#include "tests/equivalence/model_layers.h"

#include "absl/strings/str_cat.h"

namespace weft::testing {

Tensor LayerBuilder::weight(const std::string& kind, const Shape& shape) const {
  return g.parameter(absl::StrCat(name, ".", kind), shape, Init::normal(0.1));
}

Tensor LayerBuilder::layerNorm(const std::string& kind, const Tensor& x) const {
  return weft::layerNorm(x, weight(kind + ".gamma", {size.width}), weight(kind + ".beta", {size.width}));
}

Tensor LayerBuilder::rmsNorm(const std::string& kind, const Tensor& x) const {
  return x * rsqrt(mean(x * x, {2}, true) + 1e-5) * weight(kind + ".gamma", {size.width});
}

Tensor LayerBuilder::softmaxAttention(const Tensor& q, const Tensor& k, const Tensor& v) const {
  return einsum("bhqk,bkhd->bqhd", softmax(einsum("bqhd,bkhd->bhqk", q, k)), v);
}

Tensor LayerBuilder::projected(const std::string& kind, const Tensor& attended) const {
  return at(einsum("bthd,hdc->btc", at(attended, Place::kHeads),
                   weight(kind + ".o", {size.heads, size.headWidth, size.width})),
            Place::kResidual);
}

Tensor LayerBuilder::attention(const std::string& kind, const Tensor& x, const Tensor& read) const {
  const auto project = [&](const std::string& what, const Tensor& from) {
    return at(
        einsum("btc,chd->bthd", from, weight(absl::StrCat(kind, ".", what), {size.width, size.heads, size.headWidth})),
        Place::kHeads);
  };
  return projected(kind, softmaxAttention(project("q", x), project("k", read), project("v", read)));
}

Tensor LayerBuilder::fusedAttention(const Tensor& x) const {
  const Tensor qkv = einsum("btc,cshd->sbthd", x, weight("attention.qkv", {size.width, 3, size.heads, size.headWidth}));
  const auto part = [&](int64_t i) {
    return at(reshape(slice(qkv, {i, 0, 0, 0, 0}, {1, size.batch, size.tokens, size.heads, size.headWidth}),
                      {size.batch, size.tokens, size.heads, size.headWidth}),
              Place::kHeads);
  };
  return projected("attention", softmaxAttention(part(0), part(1), part(2)));
}

Tensor LayerBuilder::groupedAttention(const Tensor& x) const {
  const Tensor q = einsum("btc,chd->bthd", x, weight("attention.q", {size.width, size.heads, size.headWidth}));
  const auto repeated = [&](const std::string& what) {
    const Tensor few =
        einsum("btc,chd->bthd", x, weight("attention." + what, {size.width, size.groups, size.headWidth}));
    const Shape grouped = {size.batch, size.tokens, size.groups, size.heads / size.groups, size.headWidth};
    const Tensor all = broadcastTo(reshape(few, {size.batch, size.tokens, size.groups, 1, size.headWidth}), grouped);
    return reshape(all, {size.batch, size.tokens, size.heads, size.headWidth});
  };
  return projected("attention", softmaxAttention(q, repeated("k"), repeated("v")));
}

Tensor LayerBuilder::mlp(const Tensor& x) const {
  const Tensor hidden =
      gelu(at(matmul(x, weight("up", {size.width, size.hidden})), Place::kHidden) + weight("up.bias", {size.hidden}));
  return at(matmul(hidden, weight("down", {size.hidden, size.width})), Place::kResidual) +
         weight("down.bias", {size.width});
}

Tensor LayerBuilder::gatedMlp(const Tensor& x) const {
  const Tensor gate = at(matmul(x, weight("gate", {size.width, size.hidden})), Place::kHidden);
  const Tensor up = at(matmul(x, weight("up", {size.width, size.hidden})), Place::kHidden);
  return at(matmul(gate / (exp(-gate) + 1.0) * up, weight("down", {size.hidden, size.width})), Place::kResidual);
}

Tensor LayerBuilder::expertsMlp(const Tensor& x) const {
  const Tensor share = softmax(matmul(x, weight("router", {size.width, size.experts})));
  const Tensor hidden = gelu(einsum("btc,ech->bteh", x, weight("experts.up", {size.experts, size.width, size.hidden})));
  const Tensor counted = hidden * reshape(share, {size.batch, size.tokens, size.experts, 1});
  return einsum("bteh,ehc->btc", counted, weight("experts.down", {size.experts, size.hidden, size.width}));
}

Tensor fusedGptLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor y = x + b.fusedAttention(b.at(b.layerNorm("ln1", x), Place::kRead));
  return y + b.mlp(b.at(b.layerNorm("ln2", y), Place::kRead));
}

Tensor gptLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor h = b.at(b.layerNorm("ln1", x), Place::kRead);
  const Tensor y = x + b.attention("attention", h, h);
  return y + b.mlp(b.at(b.layerNorm("ln2", y), Place::kRead));
}

Tensor llamaLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor h = b.at(b.rmsNorm("ln1", x), Place::kRead);
  const Tensor y = x + b.attention("attention", h, h);
  return y + b.gatedMlp(b.at(b.rmsNorm("ln2", y), Place::kRead));
}

Tensor groupedLlamaLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor y = x + b.groupedAttention(b.rmsNorm("ln1", x));
  return y + b.gatedMlp(b.at(b.rmsNorm("ln2", y), Place::kRead));
}

Tensor bertLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor read = b.at(x, Place::kRead);
  const Tensor y = b.at(b.layerNorm("ln1", x + b.attention("attention", read, read)), Place::kResidual);
  return b.at(b.layerNorm("ln2", y + b.mlp(b.at(y, Place::kRead))), Place::kResidual);
}

Tensor t5EncoderLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor h = b.at(b.rmsNorm("ln1", x), Place::kRead);
  const Tensor y = x + b.attention("attention", h, h);
  return y + b.mlp(b.at(b.rmsNorm("ln2", y), Place::kRead));
}

Tensor t5DecoderLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor h = b.at(b.rmsNorm("ln1", x), Place::kRead);
  const Tensor y = x + b.attention("attention", h, h);
  const Tensor z = y + b.attention("cross", b.at(b.rmsNorm("ln2", y), Place::kRead), b.memory);
  return z + b.mlp(b.at(b.rmsNorm("ln3", z), Place::kRead));
}

Tensor expertsLayer(const LayerBuilder& b, const Tensor& x) {
  const Tensor h = b.layerNorm("ln1", x);
  const Tensor y = x + b.attention("attention", h, h);
  return y + b.expertsMlp(b.layerNorm("ln2", y));
}

}  // namespace weft::testing
