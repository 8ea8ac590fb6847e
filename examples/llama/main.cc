// Trains a small model of the LLaMA family to say the next character of a text, and writes a sample.

#include <cmath>
#include <cstdio>

#include "examples/common/family_flags.h"
#include "examples/common/text.h"
#include "runtime/base/status.h"
#include "weft/models/llama.h"
#include "weft/weft.h"

namespace weft::examples {
namespace {

struct LlamaFlags {
  FamilyFlags family;
  int64_t keyHeads = 2;
  int64_t sample = 200;

  void addTo(Flags& flags) {
    family.addTo(flags);
    flags.integer("key-heads", &keyHeads, "heads of keys and values, where no --config says them", kSize);
    flags.integer("sample", &sample, "characters of the sample at the end", kCount);
  }
};

absl::StatusOr<models::LlamaConfig> configOf(const LlamaFlags& flags, int64_t tokens) {
  models::LlamaConfig config;
  if (!flags.family.config.empty()) {
    WEFT_ASSIGN_OR_RETURN(config, models::readLlamaConfig(flags.family.config));
  } else {
    WEFT_ASSIGN_OR_RETURN(const ModelSizes sizes, flags.family.sizes());
    config.vocabulary = tokens;
    config.layers = sizes.layers;
    config.width = sizes.width;
    config.deviation = 1 / std::sqrt(static_cast<double>(sizes.width));
    config.heads = sizes.heads;
    config.keyHeads = flags.keyHeads;
    config.headWidth = sizes.width / sizes.heads;
    config.hidden = (sizes.width * 8 / 3 + 7) / 8 * 8;
  }
  config.stages = flags.family.stages;
  WEFT_RETURN_IF_ERROR(flags.family.checkModel(config.layers, config.vocabulary, tokens));
  return config;
}

// One row at a time, over caches; the batch of one is whole on every rank.
absl::StatusOr<Program> compileGeneration(const Program& training, const models::LlamaConfig& config,
                                          const FamilyFlags& flags) {
  Graph g;
  const nn::Decoding decoding = nn::decodingAt(g, flags.context);
  g.output("logits", models::llamaStep(g, config, g.input("x", {1, 1}, kI32), decoding));
  if (flags.tensorParallel) {
    g.shard(models::llamaSharding(config, {.data = "", .model = flags.parallel().model}));
  }
  return compileForward(g, Tensor(), forwardOptions(training, flags.options()));
}

struct Model {
  Tensor labels;
  Tensor logits;
  Tensor loss;
};

Model build(Graph& g, const models::LlamaConfig& config, const FamilyFlags& flags) {
  const Tensor x = g.input("x", {flags.batch, flags.context}, kI32);
  const Tensor y = g.input("y", {flags.batch, flags.context}, kI32);
  const Tensor logits = models::llama(g, config, x);
  if (flags.tensorParallel) {
    g.shard(models::llamaSharding(config, flags.parallel()));
  }
  return {y, logits, meanValid(softmaxCrossEntropy(logits, y, kIgnored), y, kIgnored)};
}

absl::Status trainAndSample(Trainer& trainer, const Program& evaluation, const Program& generation,
                            const TextDataset& data, const LlamaFlags& flags) {
  const FamilyFlags& family = flags.family;
  const TextShape shape = {family.batch, family.context};
  std::vector<int32_t> x(shape.batch * shape.context);
  std::vector<int32_t> y(x.size());
  WEFT_RETURN_IF_ERROR(trainer.fit(family.common.steps, [&](int64_t step, Feed& feed) {
    data.trainBatch(step, shape.batch, x.data(), y.data());
    feed.write("x", x);
    feed.write("y", y);
  }));
  std::printf("training loss: %s\n", lossesText(trainer.losses()).c_str());
  std::printf("unigram entropy: %.4f; a loss below it uses the context\n", unigramEntropy(data.trainTokens()));
  if (data.validationWindows() > 0) {
    WEFT_ASSIGN_OR_RETURN(const double loss, validationLoss(trainer, evaluation, data, shape));
    std::printf("validation loss after %lld steps: %.4f\n", static_cast<long long>(trainer.step()), loss);
  }
  if (flags.sample > 0) {
    WEFT_ASSIGN_OR_RETURN(
        const std::string text,
        sampleText(trainer, {generation, true, flags.sample, family.common.seed}, data, {1, shape.context}));
    std::printf("--- sample ---\n%s\n--------------\n", text.c_str());
  }
  return absl::OkStatus();
}

absl::Status run(const LlamaFlags& flags) {
  const FamilyFlags& family = flags.family;
  WEFT_RETURN_IF_ERROR(family.check());
  WEFT_ASSIGN_OR_RETURN(const TextDataset data, readText(family.text, family.textOptions()));
  WEFT_ASSIGN_OR_RETURN(const models::LlamaConfig config, configOf(flags, data.vocabularySize()));

  Graph graph;
  const Model model = build(graph, config, family);
  WEFT_ASSIGN_OR_RETURN(const Program program,
                        compile(graph, model.loss, optim::AdamW{.lr = family.lr}, family.options()));
  printProgram(program);
  absl::Status status;
  if (family.common.wrotePlan(program, &status)) {
    return status;
  }
  Graph evaluationGraph;
  models::LlamaConfig evaluatedConfig = config;
  evaluatedConfig.training = false;
  const Model evaluated = build(evaluationGraph, evaluatedConfig, family);
  measureLoss(evaluated.logits, evaluated.labels);
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, Tensor(), forwardOptions(program, family.options())));

  WEFT_ASSIGN_OR_RETURN(const Program generation, compileGeneration(program, config, family));

  Trainer trainer(program, family.common.trainerOptions());
  return family.train(trainer, models::llamaWeights(config),
                      [&] { return trainAndSample(trainer, evaluation, generation, data, flags); });
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::LlamaFlags values;
  weft::examples::Flags flags;
  values.addTo(flags);
  return weft::examples::runExample(argc, argv, values.family.common, flags,
                                    [&] { return weft::examples::run(values); });
}
