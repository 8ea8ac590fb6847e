// The layers of well-known models, written as for one device with the operators of weft/ops.h.
//
//   LayerBuilder builder = {g, "h0", sizes};
//   x = llamaLayer(builder, x);          // parameters h0.ln1.gamma, h0.attention.q, ..., h0.down
//
// A test that writes the layout of every value by hand gets each value that counts through `at`.
#pragma once

#include <functional>
#include <string>

#include "weft/weft.h"

namespace weft::testing {

struct LayerSizes {
  int64_t batch, tokens, width, heads, headWidth, groups, hidden, vocabulary;
  int64_t experts = 1;
};

// Values of a layer at which those who write every layout name one, as [batch, tokens, heads or features ...].
enum class Place : uint8_t {
  kResidual,  // between blocks, and what a block adds
  kRead,      // what the first products of a block read
  kHeads,
  kHidden,
};

// Makes the operators of one layer; its parameters' names begin with `name`.
struct LayerBuilder {
  Graph& g;
  std::string name;
  const LayerSizes& size;
  Tensor memory = {};  // what a decoder attends to
  std::function<Tensor(const Tensor&, Place)> at = [](const Tensor& x, Place) { return x; };

  Tensor weight(const std::string& kind, const Shape& shape) const;
  Tensor layerNorm(const std::string& kind, const Tensor& x) const;
  Tensor rmsNorm(const std::string& kind, const Tensor& x) const;
  // Queries of x, keys and values of `read`.
  Tensor attention(const std::string& kind, const Tensor& x, const Tensor& read) const;
  // Queries, keys and values from one product.
  Tensor fusedAttention(const Tensor& x) const;
  // size.groups heads of keys and values, each for several of queries.
  Tensor groupedAttention(const Tensor& x) const;
  Tensor mlp(const Tensor& x) const;
  Tensor gatedMlp(const Tensor& x) const;
  // Every expert works on every token, and a softmax says how much each counts.
  Tensor expertsMlp(const Tensor& x) const;

 private:
  Tensor softmaxAttention(const Tensor& q, const Tensor& k, const Tensor& v) const;
  Tensor projected(const std::string& kind, const Tensor& attended) const;
};

using Layer = Tensor (*)(const LayerBuilder& b, const Tensor& x);

Tensor fusedGptLayer(const LayerBuilder& b, const Tensor& x);
Tensor gptLayer(const LayerBuilder& b, const Tensor& x);
Tensor llamaLayer(const LayerBuilder& b, const Tensor& x);
Tensor groupedLlamaLayer(const LayerBuilder& b, const Tensor& x);
// Post-norm: q, k, v and the residual read the same value.
Tensor bertLayer(const LayerBuilder& b, const Tensor& x);
Tensor t5EncoderLayer(const LayerBuilder& b, const Tensor& x);
Tensor t5DecoderLayer(const LayerBuilder& b, const Tensor& x);
Tensor expertsLayer(const LayerBuilder& b, const Tensor& x);

}  // namespace weft::testing
