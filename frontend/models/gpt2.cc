#include "weft/models/gpt2.h"

#include "absl/strings/str_cat.h"
#include "frontend/models/config_file.h"
#include "frontend/models/layer_stages.h"
#include "weft/models/parallel.h"
#include "weft/ops.h"

namespace weft::models {

absl::StatusOr<Gpt2Config> readGpt2Config(const std::string& path) {
  ConfigFile file(path);
  file.expectType("gpt2");
  Gpt2Config config;
  config.vocabulary = file.size("vocab_size");
  config.width = file.size("n_embd");
  config.hidden = file.size("n_inner", 4 * config.width);
  config.layers = file.size("n_layer");
  config.heads = file.size("n_head");
  file.expectMultiple("n_embd", config.width, "n_head", config.heads);
  config.positions = file.size("n_positions");
  config.epsilon = file.real("layer_norm_epsilon", config.epsilon);
  config.dropout = file.rate("resid_pdrop", 0.1);
  config.deviation = file.real("initializer_range", config.deviation);
  if (const std::string activation = file.text("activation_function", "gelu_new"); activation != "gelu_new") {
    file.refuse(absl::StrCat("activation_function is '", activation, "'; this model has 'gelu_new'"));
  }
  if (file.flag("scale_attn_by_inverse_layer_idx", false) || !file.flag("scale_attn_weights", true)) {
    file.refuse("attention is scaled otherwise than by the root of its width; this model has no other scale");
  }
  if (!file.flag("tie_word_embeddings", true)) {
    file.refuse("tie_word_embeddings is false; the head of this model is its embedding's transpose");
  }
  if (!file.status().ok()) {
    return file.status();
  }
  return config;
}

Tensor gpt2(Graph& g, const Gpt2Config& config, const Tensor& ids) {
  const Init init = Init::normal(config.deviation);
  const auto drop = [&](const Tensor& x) { return config.dropout > 0 ? dropout(x, config.dropout) : x; };
  const Tensor table = g.parameter("wte", {config.vocabulary, config.width}, init);
  const Tensor positions = g.parameter("wpe", {config.positions, config.width}, init);
  Tensor x = embedding(table, ids).named("embed") + slice(positions, {0, 0}, {ids.dim(1), config.width});
  x = drop(x);
  for (int64_t i = 0; i < config.layers; ++i) {
    const Scope stage = g.stage(stageOf(i, config.layers, config.stages));
    const Scope name = g.scope(absl::StrCat("h", i));
    const nn::LayerNorm norm1(g, "ln1", config.width, config.epsilon);
    const nn::Attention attention(g, config.width, config.heads, init);
    const nn::LayerNorm norm2(g, "ln2", config.width, config.epsilon);
    const nn::Mlp mlp(g, config.width, config.hidden, init);
    x = x + drop(attention(norm1(x)));
    x = x + drop(mlp(norm2(x)));
  }
  x = nn::LayerNorm(g, "lnf", config.width, config.epsilon)(x);
  return matmul(x, table, {.transposeB = true}).named("head");
}

ShardingTable gpt2Sharding(const nn::Parallel& parallel) {
  return {
      byVocabulary("embed", parallel),
      // The weight is [width, 3, width]: q, k and v are each split.
      {"h*.qkv", {{parallel.data, "", ""}, {"", "", parallel.model}}},
      byRows("h*.proj", parallel),
      byColumns("h*.fc", parallel),
      byRows("h*.out", parallel),
      byTiedVocabulary("head", parallel),
  };
}

WeightNames gpt2Weights(const Gpt2Config& config) {
  WeightNames names;
  names.prefix = "transformer.";
  // Buffers of masks in older files, and the tied head.
  names.passedOver = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias", "lm_head.weight"};
  names.weights = {{"wte", "transformer.wte.weight"},
                   {"wpe", "transformer.wpe.weight"},
                   {"lnf.weight", "transformer.ln_f.weight"},
                   {"lnf.bias", "transformer.ln_f.bias"}};
  for (int64_t i = 0; i < config.layers; ++i) {
    for (const auto& [ours, theirs] :
         {std::pair("ln1", "ln_1"), std::pair("qkv", "attn.c_attn"), std::pair("proj", "attn.c_proj"),
          std::pair("ln2", "ln_2"), std::pair("fc", "mlp.c_fc"), std::pair("out", "mlp.c_proj")}) {
      for (const char* part : {"weight", "bias"}) {
        names.weights.push_back(
            {absl::StrCat("h", i, ".", ours, ".", part), absl::StrCat("transformer.h.", i, ".", theirs, ".", part)});
      }
    }
  }
  return names;
}

}  // namespace weft::models
