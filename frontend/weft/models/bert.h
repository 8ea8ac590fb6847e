// BERT with the head of its masked-language training (Devlin et al., "BERT", 2019): an encoder with learned positions
// and token types, layer norms after attention and mlp, a head tied to the embedding. Use: see weft/models/llama.h.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/io/weights.h"
#include "weft/graph.h"
#include "weft/modules.h"

namespace weft::models {

struct BertConfig {
  int64_t vocabulary = 30522;
  int64_t width = 768;
  int64_t hidden = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t positions = 512;  // at most so many rows
  int64_t tokenTypes = 2;
  double epsilon = 1e-12;
  double dropout = 0.0;           // of the embedding and of what attention and mlp add
  double attentionDropout = 0.0;  // of attention's probabilities
  bool training = true;           // false: no dropout
  double deviation = 0.02;
  int64_t stages = 1;
};

// From a config.json of Hugging Face's library, or its folder. Errors: what this model has not.
absl::StatusOr<BertConfig> readBertConfig(const std::string& path);

struct BertInputs {
  Tensor ids;         // [batch, rows]
  Tensor tokenTypes;  // [batch, rows]; of which sentence a token is
  Tensor mask;        // [batch, rows], whole numbers: 0 where there is only padding
};

// Logits [batch, rows, vocabulary].
Tensor bert(Graph& g, const BertConfig& config, const BertInputs& inputs);

// Tensor parallelism as in Megatron, with its sequence parallelism.
ShardingTable bertSharding(const nn::Parallel& parallel);

WeightNames bertWeights(const BertConfig& config);

}  // namespace weft::models
