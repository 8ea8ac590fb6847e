#include "examples/gpt/model.h"

#include "weft/models/gpt2.h"
#include "weft/models/parallel.h"

namespace weft::examples {

namespace {

models::Gpt2Config modelOf(const GptConfig& config) {
  return {.vocabulary = config.vocabulary,
          .width = config.width,
          .hidden = 4 * config.width,
          .layers = config.layers,
          .heads = config.heads,
          .positions = config.context,
          .embeddingDropout = config.dropout,
          .attentionDropout = config.attentionDropout,
          .residualDropout = config.dropout,
          .tiedHead = config.tiedHead,
          .deviation = config.deviation,
          .stages = config.stages,
          .recomputeLayers = config.recomputeLayers};
}

}  // namespace

ShardingTable gptSharding(const nn::Parallel& parallel) {
  ShardingTable table = models::byBlocks("h*", parallel);
  if (parallel.sequence) {
    table.push_back({"embed", {}, {{parallel.data, parallel.model, ""}}});
  }
  return table;
}

GptModel buildGpt(Graph& g, const GptConfig& config) {
  GptModel model;
  model.tokens = g.input("x", {config.batch, config.context}, kI32);
  model.labels = g.input("y", {config.batch, config.context}, kI32);
  model.logits = models::gpt2(g, modelOf(config), model.tokens);
  const Tensor loss = softmaxCrossEntropy(model.logits, model.labels, config.ignoreIndex);
  model.loss = meanValid(loss, model.labels, config.ignoreIndex);
  if (config.parallel.any()) {
    g.shard(gptSharding(config.parallel));
  }
  return model;
}

Tensor buildGptStep(Graph& g, const GptConfig& config) {
  const nn::Decoding decoding = nn::decodingAt(g, config.context);
  const Tensor logits = models::gpt2Step(g, modelOf(config), g.input("x", {config.batch, 1}, kI32), decoding);
  if (config.parallel.any()) {
    g.shard(gptSharding({.data = config.parallel.data, .model = config.parallel.model}));  // there is one row
  }
  return logits;
}

}  // namespace weft::examples
