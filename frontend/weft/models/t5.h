// T5 (Raffel et al., "Exploring the limits of transfer learning", 2020): an encoder and a decoder with rms norms and
// relative positions, which are a learned bias of the scores. Use: see weft/models/llama.h.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/io/weights.h"
#include "weft/graph.h"
#include "weft/modules.h"

namespace weft::models {

struct T5Config {
  int64_t vocabulary = 32128;
  int64_t width = 512;
  int64_t hidden = 2048;
  int64_t layers = 6;         // of the encoder
  int64_t decoderLayers = 6;  // of the decoder
  int64_t heads = 8;
  int64_t headWidth = 64;
  int64_t buckets = 32;            // of relative positions
  int64_t greatestDistance = 128;  // from which on all positions share a bucket
  double epsilon = 1e-6;
  double dropout = 0.0;  // of embeddings, attention's probabilities, the mlp, what each part adds and the last norms
  bool training = true;  // false: no dropout
  bool gated = false;    // the mlp of version 1.1: gelu(a) b instead of relu(a)
  bool tiedHead = true;  // the head is the embedding's transpose, of rows scaled by 1 / sqrt(width)
  int64_t stages = 1;    // over the layers of encoder and decoder together
};

// From a config.json of Hugging Face's library, or its folder. Errors: what this model has not.
absl::StatusOr<T5Config> readT5Config(const std::string& path);

struct T5Inputs {
  Tensor ids;         // [batch, rows] of the encoder
  Tensor mask;        // [batch, rows], whole numbers: 0 where there is only padding
  Tensor decoderIds;  // [batch, decoder rows]: the answer behind a first token
};

// Logits [batch, decoder rows, vocabulary].
Tensor t5(Graph& g, const T5Config& config, const T5Inputs& inputs);

// Tensor parallelism as in Megatron. With `sequence` the rows of encoder and decoder are split between the layers.
ShardingTable t5Sharding(const T5Config& config, const nn::Parallel& parallel);

WeightNames t5Weights(const T5Config& config);

// The bucket of a key `distance` rows after its query (negative: before), as section 2.1 of the paper and its published
// code have it: near positions have one each, far ones share them by the logarithm of the distance. In both directions,
// or looking back only.
int64_t relativeBucket(int64_t distance, bool bothDirections, int64_t buckets, int64_t greatestDistance);

}  // namespace weft::models
