#include "weft/models/gpt2.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/models/config_file.h"
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
  config.embeddingDropout = file.rate("embd_pdrop", 0.1);
  config.attentionDropout = file.rate("attn_pdrop", 0.1);
  config.residualDropout = file.rate("resid_pdrop", 0.1);
  config.tiedHead = file.flag("tie_word_embeddings", true);
  config.deviation = file.real("initializer_range", config.deviation);
  if (const std::string activation = file.text("activation_function", "gelu_new"); activation != "gelu_new") {
    file.refuse(absl::StrCat("activation_function is '", activation, "'; this model has 'gelu_new'"));
  }
  if (file.flag("scale_attn_by_inverse_layer_idx", false) || !file.flag("scale_attn_weights", true)) {
    file.refuse("attention is scaled otherwise than by the root of its width; this model has no other scale");
  }
  if (!file.status().ok()) {
    return file.status();
  }
  return config;
}

namespace {

// All rows at once, or with `decoding` one.
Tensor decoder(Graph& g, const Gpt2Config& config, const Tensor& ids, const nn::Decoding* decoding) {
  const Init init = Init::normal(config.deviation);
  // Where a product ends in the residual stream its weights are smaller by the root of how many do.
  const Init last = Init::normal(config.deviation / std::sqrt(2.0 * static_cast<double>(config.layers)));
  const auto rate = [&](double given) { return config.training && decoding == nullptr ? given : 0.0; };
  const nn::TransformerBlockSettings settings = {.hidden = config.hidden,
                                                 .init = init,
                                                 .outInit = last,
                                                 .epsilon = config.epsilon,
                                                 .dropout = rate(config.residualDropout),
                                                 .attentionDropout = rate(config.attentionDropout)};
  const Tensor table = g.parameter("wte", {config.vocabulary, config.width}, init);
  const Tensor places = g.parameter("wpe", {config.positions, config.width}, init);
  const Tensor here =
      decoding == nullptr ? narrow(places, 0, 0, ids.dim(1)) : embedding(places, reshape(decoding->position, {1}));
  Tensor x = dropout(embedding(table, ids).named("embed") + here, rate(config.embeddingDropout));
  for (int64_t i = 0; i < config.layers; ++i) {
    const Scope stage = g.stage(nn::stageOf(i, config.layers, config.stages));
    const std::optional<Scope> again = i < config.recomputeLayers ? std::optional(g.recompute()) : std::nullopt;
    const nn::TransformerBlock block(g, absl::StrCat("h", i), config.width, config.heads, settings);
    x = decoding == nullptr ? block(x) : block.step(x, *decoding);
  }
  x = nn::LayerNorm(g, "lnf", config.width, {.epsilon = config.epsilon})(x);
  if (config.tiedHead) {
    return matmul(x, table, {.transposeB = true}).named("head");
  }
  return nn::Linear(g, "head", config.width, config.vocabulary, {.init = init, .bias = false})(x);
}

}  // namespace

Tensor gpt2(Graph& g, const Gpt2Config& config, const Tensor& ids) {
  return decoder(g, config, ids, nullptr);
}

Tensor gpt2Step(Graph& g, const Gpt2Config& config, const Tensor& ids, const nn::Decoding& decoding) {
  return decoder(g, config, ids, &decoding);
}

ShardingTable gpt2Sharding(const Gpt2Config& config, const nn::Parallel& parallel) {
  ShardingTable table = byBlocks("h*", parallel);
  table.push_back(byVocabulary("embed", parallel));
  table.push_back(config.tiedHead ? byTiedVocabulary("head", parallel) : byColumns("head", parallel));
  return table;
}

WeightNames gpt2Weights(const Gpt2Config& config) {
  WeightNames names;
  names.prefix = "transformer.";
  // Buffers of masks in older files.
  names.passedOver = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};
  names.weights = {{"wte", "transformer.wte.weight"},
                   {"wpe", "transformer.wpe.weight"},
                   {"lnf.weight", "transformer.ln_f.weight"},
                   {"lnf.bias", "transformer.ln_f.bias"}};
  if (config.tiedHead) {
    names.passedOver.push_back("lm_head.weight");
  } else {
    names.weights.push_back({"head.weight", "lm_head.weight", true});
  }
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
