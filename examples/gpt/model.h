// models::gpt2 with inputs and a loss.
#pragma once

#include "weft/weft.h"

namespace weft::examples {

struct GptConfig {
  int64_t vocabulary = 65;
  int64_t layers = 6;
  int64_t width = 192;
  int64_t heads = 6;
  int64_t context = 128;
  int64_t batch = 16;
  bool tiedHead = false;          // the head is the embedding's transpose
  double dropout = 0.0;           // of the embedding, and of what attention and mlp add
  double attentionDropout = 0.0;  // of attention's probabilities
  double deviation = 0.02;        // of the first weights
  int64_t ignoreIndex = -1;       // label that counts in no loss
  int64_t stages = 1;             // pipeline stages, blocks of layers of equal size; the head is on the last
  int64_t recomputeLayers = 0;    // first blocks that the backward pass recomputes from their inputs
  nn::Parallel parallel;          // axes of gptSharding; empty: left to propagation
};

// Tensor parallelism as in Megatron, for the blocks alone: embedding and head are left to propagation, as a vocabulary
// of characters is small (models::gpt2Sharding splits it, too). With `sequence` the residual stream is split from the
// embedding on.
ShardingTable gptSharding(const nn::Parallel& parallel);

struct GptModel {
  Tensor tokens;  // input "x": [batch, context] i32
  Tensor labels;  // input "y": [batch, context] i32
  Tensor logits;  // [batch, context, vocabulary]
  Tensor loss;    // mean over the labels that are not ignored
};

// One step of generation over caches of the rows before it: inputs "x" [batch, 1] and "position"; logits [batch, 1,
// vocabulary]. The parameters are those of buildGpt.
Tensor buildGptStep(Graph& g, const GptConfig& config);

// Parameters: wte, wpe, h0.ln1.weight, h0.qkv.weight, ..., lnf.weight, lnf.bias, and head.weight unless tied.
GptModel buildGpt(Graph& g, const GptConfig& config);

}  // namespace weft::examples
