// GPT-2 (Radford et al., "Language models are unsupervised multitask learners", 2019): a decoder with learned
// positions, layer norms before attention and mlp, a head tied to the embedding. Use: see weft/models/llama.h.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/io/weights.h"
#include "weft/graph.h"
#include "weft/key_value_cache.h"
#include "weft/modules.h"

namespace weft::models {

struct Gpt2Config {
  int64_t vocabulary = 50257;
  int64_t width = 768;
  int64_t hidden = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t positions = 1024;  // at most so many rows
  double epsilon = 1e-5;
  double embeddingDropout = 0.0;
  double attentionDropout = 0.0;  // of attention's probabilities
  double residualDropout = 0.0;   // of what attention and mlp add
  bool training = true;           // false: no dropout
  bool tiedHead = true;           // the head is the embedding's transpose
  double deviation = 0.02;        // of first weights; those that end in the residual stream have it / sqrt(2 layers)
  int64_t stages = 1;
  int64_t recomputeLayers = 0;  // first layers that the backward pass recomputes from their inputs
};

// From a config.json of Hugging Face's library, or its folder. Errors: what this model has not.
absl::StatusOr<Gpt2Config> readGpt2Config(const std::string& path);

// Logits [batch, rows, vocabulary] of ids [batch, rows]. Parameters: wte, wpe, h0.ln1.weight, h0.qkv.weight, ...,
// lnf.weight, lnf.bias and, unless tied, head.weight.
Tensor gpt2(Graph& g, const Gpt2Config& config, const Tensor& ids);

// One step of generation: see llamaStep. At most `positions` rows.
Tensor gpt2Step(Graph& g, const Gpt2Config& config, const Tensor& ids, const nn::Decoding& decoding);

// Tensor parallelism as in Megatron, with its sequence parallelism.
ShardingTable gpt2Sharding(const Gpt2Config& config, const nn::Parallel& parallel);

WeightNames gpt2Weights(const Gpt2Config& config);

}  // namespace weft::models
