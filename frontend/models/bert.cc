#include "weft/models/bert.h"

#include "absl/strings/str_cat.h"
#include "frontend/models/config_file.h"
#include "weft/models/parallel.h"
#include "weft/ops.h"

namespace weft::models {

absl::StatusOr<BertConfig> readBertConfig(const std::string& path) {
  ConfigFile file(path);
  file.expectType("bert");
  BertConfig config;
  config.vocabulary = file.size("vocab_size");
  config.width = file.size("hidden_size");
  config.hidden = file.size("intermediate_size");
  config.layers = file.size("num_hidden_layers");
  config.heads = file.size("num_attention_heads");
  file.expectMultiple("hidden_size", config.width, "num_attention_heads", config.heads);
  config.positions = file.size("max_position_embeddings");
  config.tokenTypes = file.size("type_vocab_size", config.tokenTypes);
  config.epsilon = file.real("layer_norm_eps", config.epsilon);
  config.dropout = file.rate("hidden_dropout_prob", 0.1);
  config.attentionDropout = file.rate("attention_probs_dropout_prob", 0.1);
  config.deviation = file.real("initializer_range", config.deviation);
  if (const std::string activation = file.text("hidden_act", "gelu"); activation != "gelu") {
    file.refuse(absl::StrCat("hidden_act is '", activation, "'; this model has 'gelu'"));
  }
  if (const std::string kind = file.text("position_embedding_type", "absolute"); kind != "absolute") {
    file.refuse(absl::StrCat("position_embedding_type is '", kind, "'; this model has 'absolute'"));
  }
  if (file.flag("is_decoder", false)) {
    file.refuse("is_decoder is true; this model is an encoder");
  }
  if (!file.status().ok()) {
    return file.status();
  }
  return config;
}

namespace {

class Encoder {
 public:
  Encoder(Graph& g, const BertConfig& config) : g_(g), config_(config) {}

  Tensor embed(const Tensor& table, const BertInputs& inputs) const {
    const Init init = Init::normal(config_.deviation);
    const Tensor positions = g_.parameter("positions", {config_.positions, config_.width}, init);
    const Tensor types = g_.parameter("token_types", {config_.tokenTypes, config_.width}, init);
    const Tensor words = embedding(table, inputs.ids).named("embed");
    const Tensor x =
        words + embedding(types, inputs.tokenTypes).named("types") + narrow(positions, 0, 0, inputs.ids.dim(1));
    return drop(norm("norm", x));
  }

  Tensor layer(const Tensor& x, const Tensor& mask) const {
    const auto heads = [&](const char* name) { return nn::splitHeads(linear(name, config_.width, x), config_.heads); };
    const Tensor mixed = scaledDotProductAttention(heads("q"), heads("k"), heads("v"),
                                                   {.mask = mask, .dropout = rate(config_.attentionDropout)});
    const Tensor y = norm("norm1", x + drop(linear("o", config_.width, nn::mergeHeads(mixed))));
    const Tensor z = gelu(linear("up", config_.hidden, y), Gelu::kErf);
    return norm("norm2", y + drop(linear("down", config_.width, z)));
  }

  Tensor head(const Tensor& table, const Tensor& x) const {
    const Tensor h = norm("transform_norm", gelu(linear("transform", config_.width, x), Gelu::kErf));
    return matmul(h, table, {.transposeB = true}).named("head") + g_.parameter("head.bias", {config_.vocabulary});
  }

 private:
  Tensor linear(const char* name, int64_t out, const Tensor& in) const {
    return nn::Linear(g_, name, in.dim(-1), out, {.init = Init::normal(config_.deviation)})(in);
  }
  Tensor norm(const char* name, const Tensor& x) const {
    return nn::LayerNorm(g_, name, config_.width, {.epsilon = config_.epsilon})(x);
  }
  double rate(double given) const { return config_.training ? given : 0.0; }
  Tensor drop(const Tensor& x) const { return dropout(x, rate(config_.dropout)); }

  Graph& g_;
  const BertConfig& config_;
};

}  // namespace

Tensor bert(Graph& g, const BertConfig& config, const BertInputs& inputs) {
  const Encoder encoder(g, config);
  const Tensor table = g.parameter("embed", {config.vocabulary, config.width}, Init::normal(config.deviation));
  Tensor x = encoder.embed(table, inputs);
  const Tensor seen = compare(inputs.mask, 0, "ne");
  const Tensor mask = reshape(seen, {inputs.mask.dim(0), 1, 1, inputs.mask.dim(1)});
  for (int64_t i = 0; i < config.layers; ++i) {
    const Scope stage = g.stage(nn::stageOf(i, config.layers, config.stages));
    const Scope name = g.scope(absl::StrCat("layers", i));
    x = encoder.layer(x, mask);
  }
  return encoder.head(table, x);
}

ShardingTable bertSharding(const nn::Parallel& parallel) {
  return {
      byVocabulary("embed", parallel),  byColumns("layers*.q", parallel),   byColumns("layers*.k", parallel),
      byColumns("layers*.v", parallel), byRows("layers*.o", parallel),      byColumns("layers*.up", parallel),
      byRows("layers*.down", parallel), byTiedVocabulary("head", parallel),
  };
}

WeightNames bertWeights(const BertConfig& config) {
  WeightNames names;
  names.prefix = "bert.";
  // The head is tied to the embedding; the pooler and its classifier belong to other training.
  names.passedOver = {"cls.predictions.decoder.*", "bert.embeddings.position_ids", "bert.pooler.*",
                      "cls.seq_relationship.*"};
  names.weights = {{"embed", "bert.embeddings.word_embeddings.weight"},
                   {"positions", "bert.embeddings.position_embeddings.weight"},
                   {"token_types", "bert.embeddings.token_type_embeddings.weight"},
                   {"head.bias", "cls.predictions.bias"}};
  const auto add = [&](const std::string& ours, const std::string& theirs, bool isMatrix) {
    names.weights.push_back({ours + ".weight", theirs + ".weight", isMatrix});
    names.weights.push_back({ours + ".bias", theirs + ".bias"});
  };
  add("norm", "bert.embeddings.LayerNorm", false);
  add("transform", "cls.predictions.transform.dense", true);
  add("transform_norm", "cls.predictions.transform.LayerNorm", false);
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string ours = absl::StrCat("layers", i, ".");
    const std::string theirs = absl::StrCat("bert.encoder.layer.", i, ".");
    add(ours + "q", theirs + "attention.self.query", true);
    add(ours + "k", theirs + "attention.self.key", true);
    add(ours + "v", theirs + "attention.self.value", true);
    add(ours + "o", theirs + "attention.output.dense", true);
    add(ours + "norm1", theirs + "attention.output.LayerNorm", false);
    add(ours + "up", theirs + "intermediate.dense", true);
    add(ours + "down", theirs + "output.dense", true);
    add(ours + "norm2", theirs + "output.LayerNorm", false);
  }
  return names;
}

}  // namespace weft::models
