// Trains a small BERT to say which tokens of a text were masked, and shows its answers for one row.

#include <cmath>
#include <cstdio>

#include "examples/bert/masking.h"
#include "examples/common/family_flags.h"
#include "examples/common/text.h"
#include "runtime/base/status.h"
#include "weft/models/bert.h"
#include "weft/weft.h"

namespace weft::examples {
namespace {

// The tokens of the text, behind them padding and mask.
constexpr int64_t kSpecialTokens = 2;

absl::StatusOr<models::BertConfig> configOf(const FamilyFlags& flags, int64_t tokens) {
  models::BertConfig config;
  if (!flags.config.empty()) {
    WEFT_ASSIGN_OR_RETURN(config, models::readBertConfig(flags.config));
  } else {
    WEFT_ASSIGN_OR_RETURN(const ModelSizes sizes, flags.sizes());
    config.vocabulary = tokens;
    config.layers = sizes.layers;
    config.width = sizes.width;
    config.deviation = 1 / std::sqrt(static_cast<double>(sizes.width));
    config.heads = sizes.heads;
    config.hidden = 4 * sizes.width;
    config.positions = flags.context;
  }
  config.stages = flags.stages;
  WEFT_RETURN_IF_ERROR(flags.checkModel(config.layers, config.vocabulary, tokens));
  return config;
}

struct Model {
  Tensor labels;
  Tensor logits;
  Tensor loss;
};

Model build(Graph& g, const models::BertConfig& config, const FamilyFlags& flags) {
  const Shape rows = {flags.batch, flags.context};
  const Tensor logits = models::bert(g, config,
                                     {.ids = g.input("x", rows, kI32),
                                      .tokenTypes = g.input("types", rows, kI32),
                                      .mask = g.input("mask", rows, kI32)});
  const Tensor y = g.input("y", rows, kI32);
  if (flags.tensorParallel) {
    g.shard(models::bertSharding(flags.parallel()));
  }
  return {y, logits, meanValid(softmaxCrossEntropy(logits, y, kIgnored), y, kIgnored)};
}

void write(Feed& feed, const MaskedRows& rows) {
  feed.write("x", rows.ids);
  feed.write("mask", rows.seen);
  feed.write("y", rows.labels);
}

// Batches of whole windows, masked alike whenever they are asked for.
class Validation {
 public:
  Validation(const TextDataset& data, const FamilyFlags& flags, MaskingOptions masking)
      : data_(data), batch_(flags.batch), masking_(masking) {
    masking_.seed += 1;
  }
  int64_t batches() const { return data_.validationWindows() / batch_; }
  MaskedRows rows(int64_t batch) const {
    std::vector<int32_t> windows(batch_ * masking_.context);
    std::vector<int32_t> next(windows.size());
    data_.validationBatch(batch * batch_, batch_, windows.data(), next.data()).IgnoreError();  // there are so many
    return maskedRows(windows, batch, masking_);
  }

 private:
  const TextDataset& data_;
  int64_t batch_;
  MaskingOptions masking_;
};

// The first row, as the model reads it and with its answers where it is asked; '?' is a mask or padding.
absl::Status showRow(Trainer& trainer, const Program& program, const TextDataset& data, const MaskedRows& rows,
                     const FamilyFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, trainer.forward(program));
  Feed feed(*executor);
  write(feed, rows);
  WEFT_RETURN_IF_ERROR(feed.status());
  WEFT_RETURN_IF_ERROR(executor->runStep());
  WEFT_ASSIGN_OR_RETURN(const std::vector<char> logits, executor->readTensor("logits"));
  const std::vector<int32_t> answers = likeliestTokens(logits, flags.batch * flags.context);
  const std::vector<int32_t> read(rows.ids.begin(), rows.ids.begin() + flags.context);
  std::vector<int32_t> answered = read;
  for (int64_t i = 0; i < flags.context; ++i) {
    answered[i] = rows.labels[i] == kIgnored ? read[i] : answers[i];
  }
  std::printf("--- read ---\n%s\n--- answered ---\n%s\n----------------\n", data.decode(read).c_str(),
              data.decode(answered).c_str());
  return absl::OkStatus();
}

absl::Status trainAndShow(Trainer& trainer, const Program& evaluation, const TextDataset& data,
                          const FamilyFlags& flags) {
  const auto tokens = static_cast<int32_t>(data.vocabularySize());
  const MaskingOptions masking = {.context = flags.context,
                                  .tokens = tokens,
                                  .pad = tokens,
                                  .mask = tokens + 1,
                                  .seed = static_cast<uint64_t>(flags.common.seed),
                                  .ignored = kIgnored};
  std::vector<int32_t> windows(flags.batch * flags.context);
  trainer.keepInput("types", std::vector<int32_t>(windows.size(), 0));  // all rows are of one sentence
  WEFT_RETURN_IF_ERROR(trainer.fit(flags.common.steps, [&](int64_t step, Feed& feed) {
    data.trainBatch(step, flags.batch, windows.data(), nullptr);
    write(feed, maskedRows(windows, step, masking));
  }));
  std::printf("training loss: %s\n", lossesText(trainer.losses()).c_str());
  std::printf("unigram entropy: %.4f, with what unmasked places say %.4f; a loss below it uses the context\n",
              unigramEntropy(data.trainTokens()), lossWithoutContext(data.trainTokens(), masking));
  const Validation validation(data, flags, masking);
  if (validation.batches() > 0) {
    WEFT_ASSIGN_OR_RETURN(const Metrics metrics,
                          trainer.evaluate(evaluation, validation.batches(),
                                           [&](int64_t batch, Feed& feed) { write(feed, validation.rows(batch)); }));
    std::printf("validation loss after %lld steps: %.4f\n", static_cast<long long>(trainer.step()), metrics.at("loss"));
    WEFT_RETURN_IF_ERROR(showRow(trainer, evaluation, data, validation.rows(0), flags));
  }
  return absl::OkStatus();
}

absl::Status run(const FamilyFlags& flags) {
  WEFT_RETURN_IF_ERROR(flags.check());
  WEFT_ASSIGN_OR_RETURN(const TextDataset data, readText(flags.text, flags.textOptions()));
  WEFT_ASSIGN_OR_RETURN(const models::BertConfig config, configOf(flags, data.vocabularySize() + kSpecialTokens));

  Graph graph;
  const Model model = build(graph, config, flags);
  WEFT_ASSIGN_OR_RETURN(const Program program,
                        compile(graph, model.loss, optim::AdamW{.lr = flags.lr}, flags.options()));
  printProgram(program);
  absl::Status status;
  if (flags.common.wrotePlan(program, &status)) {
    return status;
  }
  Graph evaluationGraph;
  models::BertConfig evaluatedConfig = config;
  evaluatedConfig.training = false;
  const Model evaluated = build(evaluationGraph, evaluatedConfig, flags);
  evaluationGraph.output("logits", evaluated.logits);
  measureLoss(evaluated.logits, evaluated.labels);
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, Tensor(), forwardOptions(program, flags.options())));

  Trainer trainer(program, flags.common.trainerOptions());
  return flags.train(trainer, models::bertWeights(config),
                     [&] { return trainAndShow(trainer, evaluation, data, flags); });
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::FamilyFlags values;
  weft::examples::Flags flags;
  // Few labels to a row, and positions that have to be learned: short rows, more of them, more steps.
  values.context = 16;
  values.batch = 64;
  values.common.steps = 600;
  values.addTo(flags);
  return weft::examples::runExample(argc, argv, values.common, flags, [&] { return weft::examples::run(values); });
}
