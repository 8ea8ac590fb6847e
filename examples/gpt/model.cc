#include "examples/gpt/model.h"

#include <optional>

namespace weft::examples {

GptModel buildGpt(Graph& g, const GptConfig& config) {
  GptModel model;
  const Init init = Init::normal(config.deviation);
  model.tokens = g.input("x", {config.batch, config.context}, kI32);
  model.labels = g.input("y", {config.batch, config.context}, kI32);
  const Tensor wte = g.parameter("wte", {config.vocabulary, config.width}, init);
  const Tensor wpe = g.parameter("wpe", {config.context, config.width}, init);

  Tensor x = add(embedding(wte, model.tokens), wpe);
  if (config.dropout > 0) {
    x = dropout(x, config.dropout);
  }
  const nn::Parallel& parallel = config.parallel;
  if (parallel.any() && parallel.sequence) {
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
    x = block(x, parallel, config.dropout);
  }
  x = nn::LayerNorm(g, "lnf", config.width)(x);
  if (config.tiedHead) {
    model.logits = matmul(x, wte, {.transposeB = true}).named("head");
  } else {
    model.logits = matmul(x, g.parameter("head.weight", {config.width, config.vocabulary}, init)).named("head");
  }
  const Tensor loss = softmaxCrossEntropy(model.logits, model.labels, config.ignoreIndex);
  model.loss = meanValid(loss, model.labels, config.ignoreIndex);
  return model;
}

}  // namespace weft::examples
