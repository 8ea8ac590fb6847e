#include "weft/models/t5.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/models/config_file.h"
#include "weft/models/parallel.h"
#include "weft/ops.h"

namespace weft::models {

absl::StatusOr<T5Config> readT5Config(const std::string& path) {
  ConfigFile file(path);
  file.expectType("t5");
  T5Config config;
  config.vocabulary = file.size("vocab_size");
  config.width = file.size("d_model");
  config.hidden = file.size("d_ff");
  config.layers = file.size("num_layers");
  config.decoderLayers = file.size("num_decoder_layers", config.layers);
  config.heads = file.size("num_heads");
  config.headWidth = file.size("d_kv");
  config.buckets = file.size("relative_attention_num_buckets", config.buckets);
  config.greatestDistance = file.size("relative_attention_max_distance", config.greatestDistance);
  config.epsilon = file.real("layer_norm_epsilon", config.epsilon);
  config.dropout = file.rate("dropout_rate", 0.1);
  config.tiedHead = file.flag("tie_word_embeddings", true);
  const std::string mlp = file.text("feed_forward_proj", "relu");
  config.gated = mlp == "gated-gelu";
  if (!config.gated && mlp != "relu") {
    file.refuse(absl::StrCat("feed_forward_proj is '", mlp, "'; this model has 'relu' and 'gated-gelu'"));
  }
  if (!file.status().ok()) {
    return file.status();
  }
  return config;
}

int64_t relativeBucket(int64_t distance, bool bothDirections, int64_t buckets, int64_t greatestDistance) {
  int64_t first = 0;
  if (bothDirections) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) {
    return first + distance;
  }
  // In single precision, as the published models: a distance on the border of two buckets falls to the same side.
  const float share = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(greatestDistance) / static_cast<double>(exact)));
  const int64_t far = exact + static_cast<int64_t>(share * static_cast<float>(buckets - exact));
  return first + std::min(far, buckets - 1);
}

namespace {

// What encoder and decoder are made of.
class Parts {
 public:
  Parts(Graph& g, const T5Config& config) : g_(g), config_(config) {}

  // x + attention of norm(x) to `memory`, or to itself.
  Tensor attention(const std::string& name, const Tensor& x, const Tensor& memory, AttentionOptions options) const {
    const Scope scope = g_.scope(name);
    const Tensor h = norm("norm", x);
    const Tensor& keys = memory.valid() ? memory : h;
    const int64_t all = config_.heads * config_.headWidth;
    const auto heads = [&](const char* part, const Tensor& in, double deviation) {
      return nn::splitHeads(linear(part, all, in, deviation), config_.heads);
    };
    const double deviation = std::pow(config_.width, -0.5);
    options.scale = 1.0;
    options.dropout = rate();
    const Tensor q = heads("q", h, std::pow(config_.width * config_.headWidth, -0.5));
    const Tensor mixed =
        scaledDotProductAttention(q, heads("k", keys, deviation), heads("v", keys, deviation), options);
    return x + drop(linear("o", config_.width, nn::mergeHeads(mixed), std::pow(all, -0.5)));
  }

  // x + mlp of norm(x).
  Tensor mlp(const Tensor& x) const {
    const Scope scope = g_.scope("mlp");
    const Tensor h = norm("norm", x);
    const auto up = [&](const char* name) { return linear(name, config_.hidden, h, std::pow(config_.width, -0.5)); };
    const Tensor y = config_.gated ? gelu(up("gate")) * up("up") : relu(up("up"));
    return x + drop(linear("down", config_.width, drop(y), std::pow(config_.hidden, -0.5)));
  }

  // A learned bias [1, heads, rows, rows] of the scores, by the distance of a key from its query.
  Tensor positions(const std::string& name, int64_t rows, bool bothDirections) const {
    std::vector<double> buckets;
    for (int64_t query = 0; query < rows; ++query) {
      for (int64_t key = 0; key < rows; ++key) {
        buckets.push_back(static_cast<double>(
            relativeBucket(key - query, bothDirections, config_.buckets, config_.greatestDistance)));
      }
    }
    const Init init = Init::normal(std::pow(config_.width, -0.5));
    const Tensor table = g_.parameter(name, {config_.buckets, config_.heads}, init);
    const Tensor bias = embedding(table, g_.constant({rows, rows}, buckets, kI32));
    return reshape(transpose(bias, {2, 0, 1}), {1, config_.heads, rows, rows});
  }

  Tensor norm(const std::string& name, const Tensor& x) const {
    return nn::RmsNorm(g_, name, config_.width, {.epsilon = config_.epsilon})(x);
  }
  Tensor drop(const Tensor& x) const { return dropout(x, rate()); }

 private:
  double rate() const { return config_.training ? config_.dropout : 0.0; }
  Tensor linear(const char* name, int64_t out, const Tensor& in, double deviation) const {
    return nn::Linear(g_, name, in.dim(-1), out, {.init = Init::normal(deviation), .bias = false})(in);
  }

  Graph& g_;
  const T5Config& config_;
};

}  // namespace

Tensor t5(Graph& g, const T5Config& config, const T5Inputs& inputs) {
  const Parts parts(g, config);
  const int64_t rows = inputs.ids.dim(1);
  const int64_t layers = config.layers + config.decoderLayers;
  const Tensor table = g.parameter("embed", {config.vocabulary, config.width}, Init::normal(1.0));
  const Tensor seen = reshape(compare(inputs.mask, 0, "ne"), {inputs.mask.dim(0), 1, 1, rows});
  // One bias for all layers: positions where a key is seen.
  const Tensor bias =
      select(seen, parts.positions("encoder.positions", rows, true), -std::numeric_limits<double>::infinity());
  Tensor x = parts.drop(embedding(table, inputs.ids).named("encoder.embed"));
  for (int64_t i = 0; i < config.layers; ++i) {
    const Scope stage = g.stage(nn::stageOf(i, layers, config.stages));
    const Scope name = g.scope(absl::StrCat("encoder", i));
    x = parts.mlp(parts.attention("attention", x, {}, {.bias = bias}));
  }
  const Tensor memory = parts.drop(parts.norm("encoder.norm", x));
  const Tensor past = parts.positions("decoder.positions", inputs.decoderIds.dim(1), false);
  Tensor y = parts.drop(embedding(table, inputs.decoderIds).named("decoder.embed"));
  for (int64_t i = 0; i < config.decoderLayers; ++i) {
    const Scope stage = g.stage(nn::stageOf(config.layers + i, layers, config.stages));
    const Scope name = g.scope(absl::StrCat("decoder", i));
    y = parts.attention("attention", y, {}, {.causal = true, .bias = past});
    y = parts.mlp(parts.attention("cross", y, memory, {.mask = seen}));
  }
  y = parts.drop(parts.norm("decoder.norm", y));
  if (config.tiedHead) {
    return matmul(y * std::pow(config.width, -0.5), table, {.transposeB = true}).named("head");
  }
  return nn::Linear(g, "head", config.width, config.vocabulary, {.init = Init::normal(1.0), .bias = false})(y);
}

ShardingTable t5Sharding(const T5Config& config, const nn::Parallel& parallel) {
  ShardingTable table = {
      byVocabulary("*coder.embed", parallel),
      byColumns("*.q", parallel),
      byColumns("*.k", parallel),
      byColumns("*.v", parallel),
      byRows("*.o", parallel),
      byColumns("*.mlp.up", parallel),
      byRows("*.mlp.down", parallel),
      config.tiedHead ? byTiedVocabulary("head", parallel) : byColumns("head", parallel),
  };
  if (config.gated) {
    table.push_back(byColumns("*.mlp.gate", parallel));
  }
  return table;
}

namespace {

// Layers of one side: `parts` are ours and theirs, each with its norm, in the order of theirs.
void addLayers(const std::string& side, int64_t layers, const std::vector<std::pair<std::string, std::string>>& parts,
               bool gated, WeightNames& names) {
  for (int64_t i = 0; i < layers; ++i) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const std::string ours = absl::StrCat(side, i, ".", parts[p].first, ".");
      const std::string theirs = absl::StrCat(side, ".block.", i, ".layer.", p, ".");
      const auto add = [&](const std::string& mine, const std::string& other) {
        names.weights.push_back(
            {ours + mine + ".weight", absl::StrCat(theirs, parts[p].second, ".", other, ".weight"), true});
      };
      names.weights.push_back({ours + "norm.weight", theirs + "layer_norm.weight"});
      if (parts[p].first == "mlp") {
        add("up", gated ? "wi_1" : "wi");
        add("down", "wo");
        if (gated) {
          add("gate", "wi_0");
        }
      } else {
        for (const char* name : {"q", "k", "v", "o"}) {
          add(name, name);
        }
      }
    }
  }
}

}  // namespace

WeightNames t5Weights(const T5Config& config) {
  WeightNames names;
  const std::string positions = ".block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  names.weights = {{"embed", "shared.weight"},
                   {"encoder.positions", "encoder" + positions},
                   {"decoder.positions", "decoder" + positions},
                   {"encoder.norm.weight", "encoder.final_layer_norm.weight"},
                   {"decoder.norm.weight", "decoder.final_layer_norm.weight"}};
  // The embedding again, as each side reads it.
  names.passedOver = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  if (config.tiedHead) {
    names.passedOver.push_back("lm_head.weight");
  } else {
    names.weights.push_back({"head.weight", "lm_head.weight", true});
  }
  addLayers("encoder", config.layers, {{"attention", "SelfAttention"}, {"mlp", "DenseReluDense"}}, config.gated, names);
  addLayers("decoder", config.decoderLayers,
            {{"attention", "SelfAttention"}, {"cross", "EncDecAttention"}, {"mlp", "DenseReluDense"}}, config.gated,
            names);
  return names;
}

}  // namespace weft::models
