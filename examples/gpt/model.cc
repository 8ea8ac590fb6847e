#include "examples/gpt/model.h"

#include <optional>

namespace weft::examples {

namespace {

// All rows at once, or with `decoding` one.
Tensor logitsOf(Graph& g, const GptConfig& config, const Tensor& tokens, const nn::Decoding* decoding) {
  const Init init = Init::normal(config.deviation);
  const Tensor wte = g.parameter("wte", {config.vocabulary, config.width}, init);
  const Tensor wpe = g.parameter("wpe", {config.context, config.width}, init);
  Tensor x = embedding(wte, tokens) + (decoding == nullptr ? wpe : embedding(wpe, reshape(decoding->position, {1})));
  if (config.dropout > 0 && decoding == nullptr) {
    x = dropout(x, config.dropout);
  }
  const nn::Parallel& parallel = config.parallel;
  if (parallel.any() && parallel.sequence && decoding == nullptr) {
    x = constrain(x, "[{" + parallel.data + "},{" + parallel.model + "},{}]");
  }
  // The embedding is on stage 0, the head on the last one.
  const auto stageOf = [&](int64_t layer) { return static_cast<int>(layer * config.stages / config.layers); };
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const Scope stage = g.stage(stageOf(layer));
    std::optional<Scope> again;
    if (layer < config.recomputeLayers) {
      again.emplace(g.recompute());
    }
    const nn::TransformerBlock block(g, "h" + std::to_string(layer), config.width, config.heads, init);
    x = decoding == nullptr ? block(x, parallel, config.dropout) : block.step(x, *decoding, parallel);
  }
  x = nn::LayerNorm(g, "lnf", config.width)(x);
  if (config.tiedHead) {
    return matmul(x, wte, {.transposeB = true}).named("head");
  }
  return matmul(x, g.parameter("head.weight", {config.width, config.vocabulary}, init)).named("head");
}

}  // namespace

GptModel buildGpt(Graph& g, const GptConfig& config) {
  GptModel model;
  model.tokens = g.input("x", {config.batch, config.context}, kI32);
  model.labels = g.input("y", {config.batch, config.context}, kI32);
  model.logits = logitsOf(g, config, model.tokens, nullptr);
  const Tensor loss = softmaxCrossEntropy(model.logits, model.labels, config.ignoreIndex);
  model.loss = meanValid(loss, model.labels, config.ignoreIndex);
  return model;
}

Tensor buildGptStep(Graph& g, const GptConfig& config) {
  GptConfig one = config;
  one.parallel.sequence = false;  // there is one row
  const nn::Decoding decoding = nn::decodingAt(g, config.context);
  return logitsOf(g, one, g.input("x", {config.batch, 1}, kI32), &decoding);
}

}  // namespace weft::examples
