// Trains a small residual network on images, its layers on two pipeline stages, and counts the right answers.

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "examples/common/flags.h"
#include "examples/pipeline_resnet/images.h"
#include "examples/pipeline_resnet/model.h"
#include "runtime/base/status.h"

namespace weft::examples {
namespace {

struct ResnetFlags {
  CommonFlags common;
  std::string data;
  int64_t batch = 128;
  int64_t stages = 2;
  double epochs = 2;
  double lr = 2e-3;

  void addTo(Flags& flags) {
    common.defaultMicro = 4;
    common.steps = 0;
    common.addTo(flags);
    flags.text("data", &data, "directory of Fashion-MNIST's four IDX files; default: the test data, else drawn images");
    flags.integer("batch", &batch, "images of one step", kSize);
    flags.integer("stages", &stages, "pipeline stages, 1 to 3; each has the ranks of --mesh or --devices", {1, 3});
    flags.real("epochs", &epochs, "passes over the training images, where --steps is 0", {0, 1e6});
    flags.real("lr", &lr, "first learning rate of AdamW; it falls to 0 in a straight line");
  }
};

ResnetConfig configOf(const ResnetFlags& flags, const ImageDataset& data) {
  ResnetConfig config;
  config.batch = flags.batch;
  config.rows = data.rows();
  config.columns = data.columns();
  config.classes = data.classes();
  config.stages = flags.stages;
  return config;
}

// The part of the test images whose greatest logit is that of their label.
absl::StatusOr<double> accuracy(Trainer& trainer, const Program& program, const ImageDataset& data,
                                const ResnetConfig& config) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, trainer.forward(program));
  std::vector<float> x(config.batch * data.rows() * data.columns());
  std::vector<int32_t> y(config.batch);
  int64_t right = 0;
  for (int64_t first = 0; first < data.size(); first += config.batch) {
    // The last batch holds some images of the one before it: rows past its own are not counted.
    const int64_t rows = std::min(config.batch, data.size() - first);
    WEFT_RETURN_IF_ERROR(trainer.stopped());
    WEFT_RETURN_IF_ERROR(data.batch(first, rows, x.data(), y.data()));
    Feed feed(*executor);
    feed.write("x", x);
    feed.write("y", y);
    WEFT_RETURN_IF_ERROR(feed.status());
    WEFT_RETURN_IF_ERROR(executor->runStep());
    WEFT_ASSIGN_OR_RETURN(const std::vector<char> bytes, executor->readTensor("logits"));
    const auto* logits = reinterpret_cast<const float*>(bytes.data());
    for (int64_t row = 0; row < rows; ++row, logits += config.classes) {
      right += std::max_element(logits, logits + config.classes) - logits == y[row] ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(data.size());
}

absl::Status train(const ResnetFlags& flags, const ImageSplits& images, const Program& program,
                   const Program& evaluation) {
  Trainer trainer(program, flags.common.trainerOptions());
  const auto epoch = static_cast<double>(images.train.size()) / static_cast<double>(flags.batch);
  const int64_t passes = flags.epochs > 0 ? std::max<int64_t>(1, static_cast<int64_t>(flags.epochs * epoch)) : 0;
  const int64_t steps = flags.common.steps > 0 ? flags.common.steps : passes;
  std::vector<float> x(flags.batch * images.train.rows() * images.train.columns());
  std::vector<int32_t> y(flags.batch);
  const auto feed = [&](int64_t step, Feed& inputs) {
    images.train.trainBatch(step, flags.batch, x.data(), y.data());
    inputs.write("x", x);
    inputs.write("y", y);
    inputs.setLearningRate(flags.lr * (1 - static_cast<double>(step) / static_cast<double>(steps)));
  };
  return flags.common.train(trainer, [&]() -> absl::Status {
    WEFT_RETURN_IF_ERROR(trainer.fit(steps, feed));
    std::printf("training loss: %s\n", lossesText(trainer.losses()).c_str());
    WEFT_ASSIGN_OR_RETURN(const double right, accuracy(trainer, evaluation, images.test, configOf(flags, images.test)));
    std::printf("test accuracy after %lld steps: %.4f\n", static_cast<long long>(steps), right);
    return absl::OkStatus();
  });
}

absl::Status run(const ResnetFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const ImageSplits images, openImages(flags.data, static_cast<uint64_t>(flags.common.seed)));
  std::printf("images: %lld to train, %lld to test, %s\n", static_cast<long long>(images.train.size()),
              static_cast<long long>(images.test.size()), images.source.c_str());
  Graph graph;
  const ResnetConfig config = configOf(flags, images.train);
  const ResnetModel model = buildResnet(graph, config);
  const CompileOptions options = flags.common.options();
  WEFT_ASSIGN_OR_RETURN(const Program program, compile(graph, model.loss, optim::AdamW{.lr = flags.lr}, options));
  printProgram(program);
  absl::Status status;
  if (flags.common.wrotePlan(program, &status)) {
    return status;
  }
  Graph evaluationGraph;
  ResnetConfig evaluated = config;
  evaluated.training = false;
  const ResnetModel evaluationModel = buildResnet(evaluationGraph, evaluated);
  evaluationGraph.output("logits", evaluationModel.logits);
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, evaluationModel.loss, forwardOptions(program, options)));
  return train(flags, images, program, evaluation);
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::ResnetFlags values;
  weft::examples::Flags flags;
  values.addTo(flags);
  return weft::examples::runExample(argc, argv, values.common, flags, [&] { return weft::examples::run(values); });
}
