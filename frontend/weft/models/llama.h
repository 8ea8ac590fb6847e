// The decoder of the LLaMA family (Touvron et al., "LLaMA", 2023; Llama 2 and 3, Mistral and others keep its form):
// rms norms, rotary positions, heads that share keys, a gated mlp.
//
//   WEFT_ASSIGN_OR_RETURN(const auto config, weft::models::readLlamaConfig("tiny-llama"));
//   const Tensor logits = weft::models::llama(g, config, g.input("ids", {8, 128}, weft::kI32));
//   g.shard(weft::models::llamaSharding(config, {.data = "dp", .model = "tp"}));
//   ...
//   trainer.loadWeights("tiny-llama", weft::models::llamaWeights(config));
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/io/weights.h"
#include "weft/graph.h"
#include "weft/key_value_cache.h"
#include "weft/modules.h"

namespace weft::models {

struct LlamaConfig {
  int64_t vocabulary = 32000;
  int64_t width = 4096;
  int64_t hidden = 11008;  // of the mlp
  int64_t layers = 32;
  int64_t heads = 32;
  int64_t keyHeads = 32;    // of keys and values; a divisor of heads
  int64_t headWidth = 128;  // even
  double epsilon = 1e-6;
  double rotaryBase = 10000;
  bool tiedHead = false;          // the head is the embedding's transpose
  bool attentionBias = false;     // of q, k, v and o
  bool mlpBias = false;           // of gate, up and down
  double attentionDropout = 0.0;  // of attention's probabilities
  bool training = true;           // false: no dropout
  double deviation = 0.02;
  int64_t stages = 1;  // pipeline stages: layers in blocks of equal size, the head on the last
};

// From a config.json of Hugging Face's library, or its folder. Errors: what this model has not, as scaled rotary
// positions.
absl::StatusOr<LlamaConfig> readLlamaConfig(const std::string& path);

// Logits [batch, rows, vocabulary] of ids [batch, rows]. Parameters: embed, layers0.q.weight, ..., norm.weight and,
// unless tied, head.weight.
Tensor llama(Graph& g, const LlamaConfig& config, const Tensor& ids);

// One step of generation: logits [batch, 1, vocabulary] of the ids [batch, 1] at decoding's row, over caches of what
// came before, layers0.cache.keys and so on. A forward program over the parameters of training (Trainer::forward with
// allowNew).
Tensor llamaStep(Graph& g, const LlamaConfig& config, const Tensor& ids, const nn::Decoding& decoding);

// Tensor parallelism as in Megatron, with its sequence parallelism; to read, and to change a copy of.
ShardingTable llamaSharding(const LlamaConfig& config, const nn::Parallel& parallel);

// The parameters under the names of Hugging Face's library.
WeightNames llamaWeights(const LlamaConfig& config);

}  // namespace weft::models
