// Trains a small GPT on text, on the ranks of a mesh, and writes a sample at the end.

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "examples/common/flags.h"
#include "examples/common/text.h"
#include "examples/gpt/model.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"
#include "runtime/io/memory_use.h"
#include "runtime/io/text_dataset.h"
#include "runtime/plan/statistics.h"

namespace weft::examples {
namespace {

struct GptFlags {
  CommonFlags common;
  std::string text;
  bool bytes = false;
  std::string bpe;
  int64_t vocabulary = 0;
  int64_t layers = 3;
  int64_t width = 96;
  int64_t heads = 6;
  int64_t context = 64;
  int64_t batch = 16;
  std::string optimizer = "adamw";
  std::optional<double> lr;
  std::optional<double> decay;
  std::optional<double> momentum;
  double clip = 0.0;
  double dropout = 0.0;
  bool tied = false;
  int64_t stages = 1;
  bool tensorParallel = false;
  bool sequenceParallel = false;
  int64_t sample = 200;
  bool withoutCache = false;
  std::string losses;

  void addTo(Flags& flags) {
    common.steps = 120;
    common.addTo(flags);
    flags.text("text", &text, "text file; default: Weft's own documentation");
    flags.toggle("bytes", &bytes, "tokens are bytes instead of characters");
    flags.text("bpe", &bpe, "tokens are byte pairs of the encoder.json and vocab.bpe (GPT-2's) in this folder");
    flags.integer("vocabulary", &vocabulary, "so many tokens and no text, for --plan-only; 0 = those of the text",
                  kCount);
    flags.integer("layers", &layers, "transformer blocks", kSize);
    flags.integer("width", &width, "channels", kSize);
    flags.integer("heads", &heads, "attention heads", kSize);
    flags.integer("context", &context, "tokens of one row", kSize);
    flags.integer("batch", &batch, "rows of one step", kSize);
    flags.text("optimizer", &optimizer, "sgd, adam, adamw, adagrad, rmsprop, lamb, lion or adafactor");
    flags.real("lr", &lr, "learning rate; default: the optimizer's");
    flags.real("weight-decay", &decay, "weight decay; default: the optimizer's");
    flags.real("momentum", &momentum, "momentum of sgd or rmsprop");
    flags.real("clip", &clip, "global gradient norm, 0 = none");
    flags.real("dropout", &dropout, "dropout rate", {0, 0.999});
    flags.toggle("tied", &tied, "the head is the embedding's transpose");
    flags.integer("stages", &stages, "pipeline stages; each has the ranks of --mesh or --devices", kSize);
    flags.toggle("tensor-parallel", &tensorParallel, "column/row strategies over mesh axis tp");
    flags.toggle("sequence-parallel", &sequenceParallel, "residual stream split along the sequence over tp");
    flags.integer("sample", &sample, "tokens of the sample at the end", kCount);
    flags.toggle("without-cache", &withoutCache, "the sample computes all rows again for each token");
    flags.text("losses", &losses, "write the loss of every step to this file");
  }
};

// Flags that contradict each other.
absl::Status check(const GptFlags& flags) {
  if (flags.stages > flags.layers) {
    return absl::InvalidArgumentError(absl::StrCat("--stages ", flags.stages, " with --layers ", flags.layers,
                                                   ": a stage has at least one layer; give --layers ", flags.stages,
                                                   ", or at most ", flags.layers, " stages"));
  }
  if (flags.width % flags.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--heads ", flags.heads, " does not divide --width ", flags.width,
                                                   "; give --width ", (flags.width / flags.heads + 1) * flags.heads,
                                                   ", or other heads"));
  }
  if (flags.bytes && !flags.bpe.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--bytes beside --bpe ", flags.bpe, ": tokens are one or the other; leave out one of them"));
  }
  if (flags.vocabulary > 0 && (flags.common.planOnly.empty() || !flags.text.empty() || !flags.bpe.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("--vocabulary ", flags.vocabulary,
                                                   " stands for a text that is not read: it goes with --plan-only, and "
                                                   "without --text and --bpe"));
  }
  if (flags.sequenceParallel && !flags.tensorParallel) {
    return absl::InvalidArgumentError("--sequence-parallel has no effect alone; give --tensor-parallel, too");
  }
  return absl::OkStatus();
}

GptConfig configOf(const GptFlags& flags, int64_t vocabulary) {
  GptConfig config;
  config.vocabulary = vocabulary;
  config.layers = flags.layers;
  config.width = flags.width;
  config.heads = flags.heads;
  config.context = flags.context;
  config.batch = flags.batch;
  config.tiedHead = flags.tied;
  config.stages = flags.stages;
  config.dropout = flags.dropout;
  config.attentionDropout = flags.dropout;
  config.ignoreIndex = kIgnored;
  if (flags.tensorParallel) {
    config.parallel = flags.common.parallel(flags.sequenceParallel);
  }
  return config;
}

struct Run {
  const GptFlags& flags;
  const TextDataset& data;
  const Program& training;
  const Program& evaluation;
  const Program& generation;
  int64_t residentBefore = 0;  // the trainer was made
};

// Trains, validates after a few steps and at the end, and writes a sample.
absl::Status trainAndSample(Trainer& trainer, const Run& run) {
  const GptFlags& flags = run.flags;
  const TextDataset& data = run.data;
  const auto feed = [&](int64_t step, Feed& inputs) {
    const int64_t start = step * flags.batch;
    inputs.writeRows<int32_t>(
        "x", [&](int64_t first, int64_t rows, int32_t* out) { data.trainWindows(start + first, rows, out, nullptr); });
    inputs.writeRows<int32_t>(
        "y", [&](int64_t first, int64_t rows, int32_t* out) { data.trainWindows(start + first, rows, nullptr, out); });
  };
  const auto validated = [&]() -> absl::Status {
    if (data.validationWindows() > 0) {
      WEFT_ASSIGN_OR_RETURN(const double loss,
                            validationLoss(trainer, run.evaluation, data, {flags.batch, flags.context}));
      std::printf("validation loss after %lld steps: %.4f\n", static_cast<long long>(trainer.step()), loss);
    }
    return absl::OkStatus();
  };
  const int64_t first = std::min<int64_t>(2, flags.common.steps);
  WEFT_RETURN_IF_ERROR(trainer.fit(first, feed));
  const int64_t used = residentBytes() - run.residentBefore;
  const int64_t predicted = plannedBytes(run.training.plan);
  std::printf("memory of all ranks: predicted %.2f MiB, resident growth to the end of step %lld %.2f MiB\n",
              static_cast<double>(predicted) / (1 << 20), static_cast<long long>(first),
              static_cast<double>(used) / (1 << 20));
  WEFT_RETURN_IF_ERROR(validated());
  WEFT_RETURN_IF_ERROR(trainer.fit(flags.common.steps - first, feed));
  std::printf("training loss: %s\n", lossesText(trainer.losses()).c_str());
  WEFT_RETURN_IF_ERROR(validated());
  if (flags.sample > 0) {
    // All rows at once come as a whole batch.
    const bool cached = !flags.withoutCache;
    const Sampling sampling = {cached ? run.generation : run.evaluation, cached, flags.sample, flags.common.seed};
    WEFT_ASSIGN_OR_RETURN(const std::string text,
                          sampleText(trainer, sampling, data, {cached ? 1 : flags.batch, flags.context}));
    std::printf("--- sample ---\n%s\n--------------\n", text.c_str());
  }
  return absl::OkStatus();
}

absl::Status train(Run run) {
  const GptFlags& flags = run.flags;
  TrainerOptions options = flags.common.trainerOptions();
  options.totalSteps = flags.common.steps;
  run.residentBefore = residentBytes();
  Trainer trainer(run.training, options);
  return flags.common.train(trainer, [&] {
    const absl::Status trained = trainAndSample(trainer, run);
    // Also of a run that failed: they show how.
    const absl::Status written = flags.losses.empty() ? absl::OkStatus() : writeLosses(flags.losses, trainer.losses());
    return trained.ok() ? written : trained;
  });
}

absl::StatusOr<Optimizer> optimizerOf(const GptFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(Optimizer optimizer, Optimizer::named(flags.optimizer));
  const std::pair<const char*, std::optional<double>> given[] = {
      {"lr", flags.lr}, {"weight_decay", flags.decay}, {"momentum", flags.momentum}};
  for (const auto& [setting, value] : given) {
    if (value) {
      optimizer.set(setting, *value);
    }
  }
  return optimizer;
}

absl::StatusOr<Program> compileTraining(const GptFlags& flags, int64_t vocabulary, const CompileOptions& options) {
  Graph graph;
  const GptModel model = buildGpt(graph, configOf(flags, vocabulary));
  WEFT_ASSIGN_OR_RETURN(const Optimizer optimizer, optimizerOf(flags));
  WEFT_ASSIGN_OR_RETURN(Program program, compile(graph, model.loss, optimizer, options));
  printProgram(program);
  return program;
}

absl::Status run(const GptFlags& flags) {
  WEFT_RETURN_IF_ERROR(check(flags));
  WEFT_ASSIGN_OR_RETURN(const Optimizer optimizer, optimizerOf(flags));
  WEFT_RETURN_IF_ERROR(checkOptimizer(optimizer));  // before a text is read
  WEFT_RETURN_IF_ERROR(flags.losses.empty() ? absl::OkStatus() : canWrite(flags.losses));
  CompileOptions compileOptions = flags.common.options();
  compileOptions.clipNorm = flags.clip;
  absl::Status status;
  if (flags.vocabulary > 0) {
    WEFT_ASSIGN_OR_RETURN(const Program program, compileTraining(flags, flags.vocabulary, compileOptions));
    flags.common.wrotePlan(program, &status);
    return status;
  }
  TextDatasetOptions textOptions{.tokens = flags.bytes ? TokenKind::kByte : TokenKind::kCharacter,
                                 .window = flags.context,
                                 .seed = static_cast<uint64_t>(flags.common.seed)};
  WEFT_RETURN_IF_ERROR(flags.bpe.empty() ? absl::OkStatus() : useBytePairs(flags.bpe, textOptions));
  WEFT_ASSIGN_OR_RETURN(const TextDataset data, readText(flags.text, textOptions));
  WEFT_ASSIGN_OR_RETURN(const Program program, compileTraining(flags, data.vocabularySize(), compileOptions));
  if (flags.common.wrotePlan(program, &status)) {
    return status;
  }
  Graph evaluationGraph;
  GptConfig config = configOf(flags, data.vocabularySize());
  config.dropout = 0;
  config.attentionDropout = 0;
  const GptModel evaluationModel = buildGpt(evaluationGraph, config);
  evaluationGraph.output("logits", evaluationModel.logits);
  measureLoss(evaluationModel.logits, evaluationModel.labels);
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, Tensor(), forwardOptions(program, compileOptions)));
  Graph generationGraph;
  config.batch = 1;  // whole on every rank
  config.parallel.data = "";
  config.recomputeLayers = 0;
  generationGraph.output("logits", buildGptStep(generationGraph, config));
  WEFT_ASSIGN_OR_RETURN(const Program generation,
                        compileForward(generationGraph, Tensor(), forwardOptions(program, compileOptions)));
  return train({flags, data, program, evaluation, generation});
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::GptFlags values;
  weft::examples::Flags flags;
  values.addTo(flags);
  return weft::examples::runExample(argc, argv, values.common, flags, [&] { return weft::examples::run(values); });
}
