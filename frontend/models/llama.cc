#include "weft/models/llama.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/models/config_file.h"
#include "weft/models/parallel.h"
#include "weft/ops.h"

namespace weft::models {

absl::StatusOr<LlamaConfig> readLlamaConfig(const std::string& path) {
  ConfigFile file(path);
  file.expectType("llama");
  LlamaConfig config;
  config.vocabulary = file.size("vocab_size");
  config.width = file.size("hidden_size");
  config.hidden = file.size("intermediate_size");
  config.layers = file.size("num_hidden_layers");
  config.heads = file.size("num_attention_heads");
  config.keyHeads = file.size("num_key_value_heads", config.heads);
  file.expectMultiple("num_attention_heads", config.heads, "num_key_value_heads", config.keyHeads);
  config.headWidth = file.size("head_dim", std::max<int64_t>(config.width / config.heads, 1));
  if (!file.says("head_dim")) {
    file.expectMultiple("hidden_size", config.width, "num_attention_heads", config.heads);
  }
  if (config.headWidth % 2 != 0) {
    file.refuse(absl::StrCat("head_dim is ", config.headWidth, "; rotary positions turn pairs, so it has to be even"));
  }
  config.epsilon = file.real("rms_norm_eps", config.epsilon);
  // Under rope_parameters in newer files, at the top level in older ones.
  config.rotaryBase = file.real("rope_parameters", "rope_theta", file.real("rope_theta", config.rotaryBase));
  config.tiedHead = file.flag("tie_word_embeddings", false);
  config.deviation = file.real("initializer_range", config.deviation);
  for (const char* object : {"rope_parameters", "rope_scaling"}) {
    const std::string older = file.text(object, "type", "default");
    if (const std::string kind = file.text(object, "rope_type", older); kind != "default") {
      file.refuse(absl::StrCat(object, ".rope_type is '", kind, "'; only rotary positions of type 'default' are here"));
    }
  }
  if (const std::string activation = file.text("hidden_act", "silu"); activation != "silu") {
    file.refuse(absl::StrCat("hidden_act is '", activation, "'; this model has 'silu'"));
  }
  config.attentionBias = file.flag("attention_bias", false);
  config.mlpBias = file.flag("mlp_bias", false);
  config.attentionDropout = file.real("attention_dropout", 0.0);
  if (!file.status().ok()) {
    return file.status();
  }
  return config;
}

namespace {

// What a layer's attention works with beside its input.
struct Rows {
  RotaryTables angles;
  const nn::Decoding* decoding = nullptr;  // null: all rows at once
};

Tensor attention(Graph& g, const LlamaConfig& config, const Rows& rows, const Tensor& x) {
  const auto linear = [&](const char* name, int64_t out, const Tensor& in) {
    return nn::Linear(g, name, in.dim(-1), out,
                      {.init = Init::normal(config.deviation), .bias = config.attentionBias})(in);
  };
  const auto heads = [&](const char* name, int64_t count) {
    return nn::splitHeads(linear(name, count * config.headWidth, x), count);
  };
  const auto turned = [&](const Tensor& y) { return rotary(y, rows.angles.cos, rows.angles.sin); };
  const Tensor q = turned(heads("q", config.heads));
  const Tensor k = turned(heads("k", config.keyHeads));
  const Tensor v = heads("v", config.keyHeads);
  Tensor mixed;
  if (rows.decoding == nullptr) {
    const double rate = config.training ? config.attentionDropout : 0.0;
    mixed = scaledDotProductAttention(q, k, v, {.causal = true, .dropout = rate});
  } else {
    const Shape cache = {k.dim(0), k.dim(1), rows.decoding->seen.dim(0), k.dim(3)};
    const nn::Cached seen = nn::KeyValueCache(g, "cache", cache, k.type())(k, v, *rows.decoding);
    mixed = scaledDotProductAttention(q, seen.keys, seen.values, {.mask = rows.decoding->seen});
  }
  return linear("o", config.width, nn::mergeHeads(mixed));
}

Tensor mlp(Graph& g, const LlamaConfig& config, const Tensor& x) {
  const auto linear = [&](const char* name, int64_t out, const Tensor& in) {
    return nn::Linear(g, name, in.dim(-1), out, {.init = Init::normal(config.deviation), .bias = config.mlpBias})(in);
  };
  return linear("down", config.width, silu(linear("gate", config.hidden, x)) * linear("up", config.hidden, x));
}

Tensor layer(Graph& g, const LlamaConfig& config, const Rows& rows, const Tensor& x) {
  const Tensor y =
      x + attention(g, config, rows, nn::RmsNorm(g, "norm1", config.width, {.epsilon = config.epsilon})(x));
  return y + mlp(g, config, nn::RmsNorm(g, "norm2", config.width, {.epsilon = config.epsilon})(y));
}

Tensor model(Graph& g, const LlamaConfig& config, const Tensor& ids, const nn::Decoding* decoding) {
  const Init init = Init::normal(config.deviation);
  const Tensor table = g.parameter("embed", {config.vocabulary, config.width}, init);
  Tensor x = embedding(table, ids).named("embed");
  const int64_t rows = decoding == nullptr ? ids.dim(1) : decoding->seen.dim(0);
  RotaryTables angles = rotaryTables(g, rows, config.headWidth, config.rotaryBase, x.type());
  if (decoding != nullptr) {
    const Tensor here = reshape(decoding->position, {1});
    angles = {embedding(angles.cos, here), embedding(angles.sin, here)};
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    const Scope stage = g.stage(nn::stageOf(i, config.layers, config.stages));
    const Scope name = g.scope(absl::StrCat("layers", i));
    x = layer(g, config, {angles, decoding}, x);
  }
  x = nn::RmsNorm(g, "norm", config.width, {.epsilon = config.epsilon})(x);
  if (config.tiedHead) {
    return matmul(x, table, {.transposeB = true}).named("head");
  }
  return nn::Linear(g, "head", config.width, config.vocabulary, {.init = init, .bias = false})(x);
}

}  // namespace

Tensor llama(Graph& g, const LlamaConfig& config, const Tensor& ids) {
  return model(g, config, ids, nullptr);
}

Tensor llamaStep(Graph& g, const LlamaConfig& config, const Tensor& ids, const nn::Decoding& decoding) {
  return model(g, config, ids, &decoding);
}

ShardingTable llamaSharding(const LlamaConfig& config, const nn::Parallel& parallel) {
  return {
      byVocabulary("embed", parallel),
      byColumns("layers*.q", parallel),
      byColumns("layers*.k", parallel),
      byColumns("layers*.v", parallel),
      byRows("layers*.o", parallel),
      byColumns("layers*.gate", parallel),
      byColumns("layers*.up", parallel),
      byRows("layers*.down", parallel),
      config.tiedHead ? byTiedVocabulary("head", parallel) : byColumns("head", parallel),
  };
}

WeightNames llamaWeights(const LlamaConfig& config) {
  WeightNames names;
  names.prefix = "model.";
  names.passedOver = {"*.rotary_emb.inv_freq"};
  names.weights = {{"embed", "model.embed_tokens.weight"}, {"norm.weight", "model.norm.weight"}};
  if (config.tiedHead) {
    names.passedOver.push_back("lm_head.weight");
  } else {
    names.weights.push_back({"head.weight", "lm_head.weight", true});
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto add = [&](const std::string& ours, const std::string& theirs, bool transposed) {
      names.weights.push_back({absl::StrCat("layers", i, ".", ours, ".weight"),
                               absl::StrCat("model.layers.", i, ".", theirs, ".weight"), transposed});
    };
    add("norm1", "input_layernorm", false);
    add("norm2", "post_attention_layernorm", false);
    const auto addLinear = [&](const std::string& ours, const std::string& theirs, bool bias) {
      add(ours, theirs, true);
      if (bias) {
        names.weights.push_back(
            {absl::StrCat("layers", i, ".", ours, ".bias"), absl::StrCat("model.layers.", i, ".", theirs, ".bias")});
      }
    };
    for (const char* name : {"q", "k", "v", "o"}) {
      addLinear(name, absl::StrCat("self_attn.", name, "_proj"), config.attentionBias);
    }
    for (const char* name : {"gate", "up", "down"}) {
      addLinear(name, absl::StrCat("mlp.", name, "_proj"), config.mlpBias);
    }
  }
  return names;
}

}  // namespace weft::models
