// Trains a small T5 to fill in the spans that were dropped from a text, and shows its answer for one row.

#include <cstdio>

#include "examples/common/family_flags.h"
#include "examples/common/text.h"
#include "examples/t5/span_corruption.h"
#include "runtime/base/status.h"
#include "weft/models/t5.h"
#include "weft/weft.h"

namespace weft::examples {
namespace {

absl::StatusOr<models::T5Config> configOf(const FamilyFlags& flags, int64_t tokens) {
  models::T5Config config;
  if (!flags.config.empty()) {
    WEFT_ASSIGN_OR_RETURN(config, models::readT5Config(flags.config));
  } else {
    WEFT_ASSIGN_OR_RETURN(const ModelSizes sizes, flags.sizes());
    config.vocabulary = tokens;
    config.layers = sizes.layers;
    config.decoderLayers = sizes.layers;
    config.width = sizes.width;
    config.heads = sizes.heads;
    config.headWidth = sizes.width / sizes.heads;
    config.gated = true;  // the mlp of version 1.1
    config.hidden = 4 * sizes.width;
  }
  config.stages = flags.stages;
  WEFT_RETURN_IF_ERROR(flags.checkModel(config.layers + config.decoderLayers, config.vocabulary, tokens));
  return config;
}

struct Model {
  Tensor labels;
  Tensor logits;
  Tensor loss;
};

Model build(Graph& g, const models::T5Config& config, const SpanLengths& lengths, const FamilyFlags& flags) {
  const Shape inputs = {flags.batch, lengths.inputs()};
  const Shape targets = {flags.batch, lengths.targets()};
  const Tensor logits = models::t5(g, config,
                                   {.ids = g.input("x", inputs, kI32),
                                    .mask = g.input("mask", inputs, kI32),
                                    .decoderIds = g.input("decoder", targets, kI32)});
  const Tensor y = g.input("y", targets, kI32);
  if (flags.tensorParallel) {
    g.shard(models::t5Sharding(config, flags.parallel()));
  }
  return {y, logits, mean(softmaxCrossEntropy(logits, y))};
}

void write(Feed& feed, const CorruptedRows& rows) {
  feed.write("x", rows.inputs);
  feed.write("decoder", rows.decoderInputs);
  feed.write("y", rows.targets);
}

// The first row, as the encoder reads it, what was dropped, and the model's answer, each token behind the right ones;
// '?' is a sentinel.
absl::Status showRow(Trainer& trainer, const Program& program, const TextDataset& data, const CorruptedRows& rows,
                     const FamilyFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, trainer.forward(program));
  Feed feed(*executor);
  write(feed, rows);
  WEFT_RETURN_IF_ERROR(feed.status());
  WEFT_RETURN_IF_ERROR(executor->runStep());
  WEFT_ASSIGN_OR_RETURN(const std::vector<char> logits, executor->readTensor("logits"));
  const auto firstRow = [&](const std::vector<int32_t>& tokens) {
    const auto width = static_cast<int64_t>(tokens.size()) / flags.batch;
    return data.decode(std::vector<int32_t>(tokens.begin(), tokens.begin() + width));
  };
  std::printf("--- read ---\n%s\n--- dropped ---\n%s\n--- answered ---\n%s\n----------------\n",
              firstRow(rows.inputs).c_str(), firstRow(rows.targets).c_str(),
              firstRow(likeliestTokens(logits, static_cast<int64_t>(rows.targets.size()))).c_str());
  return absl::OkStatus();
}

struct Run {
  const FamilyFlags& flags;
  const TextDataset& data;
  const Program& evaluation;
  SpanLengths lengths;
  SpanTokens tokens;
};

absl::Status trainAndShow(Trainer& trainer, const Run& run) {
  const FamilyFlags& flags = run.flags;
  const TextDataset& data = run.data;
  const auto seed = static_cast<uint64_t>(flags.common.seed);
  std::vector<int32_t> windows(flags.batch * flags.context);
  trainer.keepInput("mask", std::vector<int32_t>(flags.batch * run.lengths.inputs(), 1));  // there is no padding
  WEFT_RETURN_IF_ERROR(trainer.fit(flags.common.steps, [&](int64_t step, Feed& feed) {
    data.trainBatch(step, flags.batch, windows.data(), nullptr);
    write(feed, corruptedRows(windows, step * flags.batch, run.lengths, run.tokens, seed));
  }));
  std::printf("training loss: %s\n", lossesText(trainer.losses()).c_str());
  const double entropy = unigramEntropy(data.trainTokens());
  const double share = static_cast<double>(run.lengths.dropped) / static_cast<double>(run.lengths.targets());
  std::printf("unigram entropy: %.4f, of a target with its sentinels %.4f; a loss below it uses the context\n", entropy,
              entropy * share);
  const int64_t batches = data.validationWindows() / flags.batch;
  const auto validation = [&](int64_t batch) {
    std::vector<int32_t> next(windows.size());
    data.validationBatch(batch * flags.batch, flags.batch, windows.data(), next.data())
        .IgnoreError();  // there are so many
    return corruptedRows(windows, batch * flags.batch, run.lengths, run.tokens, seed + 1);
  };
  if (batches > 0) {
    WEFT_ASSIGN_OR_RETURN(
        const Metrics metrics,
        trainer.evaluate(run.evaluation, batches, [&](int64_t batch, Feed& feed) { write(feed, validation(batch)); }));
    std::printf("validation loss after %lld steps: %.4f\n", static_cast<long long>(trainer.step()), metrics.at("loss"));
    WEFT_RETURN_IF_ERROR(showRow(trainer, run.evaluation, data, validation(0), flags));
  }
  return absl::OkStatus();
}

absl::Status run(const FamilyFlags& flags) {
  WEFT_RETURN_IF_ERROR(flags.check());
  WEFT_ASSIGN_OR_RETURN(const TextDataset data, readText(flags.text, flags.textOptions()));
  if (flags.context < 2) {
    return absl::InvalidArgumentError("--context 1: one token is dropped and one left; give at least 2");
  }
  const SpanLengths lengths = spanLengths(flags.context);
  std::printf("spans: %lld, of %lld tokens together; %lld rows of the encoder, %lld of the decoder\n",
              static_cast<long long>(lengths.spans), static_cast<long long>(lengths.dropped),
              static_cast<long long>(lengths.inputs()), static_cast<long long>(lengths.targets()));
  // The tokens of the text, the decoder's first token; at the end of the vocabulary the sentinels.
  const int64_t needed = data.vocabularySize() + 1 + lengths.sentinels();
  WEFT_ASSIGN_OR_RETURN(const models::T5Config config, configOf(flags, needed));
  const SpanTokens tokens = {.start = static_cast<int32_t>(data.vocabularySize()),
                             .lastSentinel = static_cast<int32_t>(config.vocabulary - 1)};

  Graph graph;
  const Model model = build(graph, config, lengths, flags);
  WEFT_ASSIGN_OR_RETURN(const Program program,
                        compile(graph, model.loss, optim::AdamW{.lr = flags.lr}, flags.options()));
  printProgram(program);
  absl::Status status;
  if (flags.common.wrotePlan(program, &status)) {
    return status;
  }
  Graph evaluationGraph;
  models::T5Config evaluatedConfig = config;
  evaluatedConfig.training = false;
  const Model evaluated = build(evaluationGraph, evaluatedConfig, lengths, flags);
  evaluationGraph.output("logits", evaluated.logits);
  measureLoss(evaluated.logits, evaluated.labels);
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, Tensor(), forwardOptions(program, flags.options())));

  Trainer trainer(program, flags.common.trainerOptions());
  return flags.train(trainer, models::t5Weights(config),
                     [&] { return trainAndShow(trainer, {flags, data, evaluation, lengths, tokens}); });
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::FamilyFlags values;
  weft::examples::Flags flags;
  values.context = 33;  // 30 rows of the encoder and 8 of the decoder, even numbers for --sequence-parallel
  values.batch = 64;
  values.common.steps = 600;
  values.addTo(flags);
  return weft::examples::runExample(argc, argv, values.common, flags, [&] { return weft::examples::run(values); });
}
