// Trains a small residual network on images and counts the right answers.

#include <cstdio>

#include "examples/common/flags.h"
#include "examples/common/images.h"
#include "examples/resnet/model.h"
#include "runtime/base/status.h"

namespace weft::examples {
namespace {

struct ResnetFlags {
  CommonFlags common;
  std::string data;
  int64_t batch = 128;
  int64_t stages = 1;
  double epochs = 2;
  double lr = 2e-3;
  bool tensorParallel = false;

  void addTo(Flags& flags) {
    common.defaultMicro = 4;
    common.steps = 0;
    common.addTo(flags);
    flags.text("data", &data, "directory of Fashion-MNIST's four IDX files; default: the test data, else drawn images");
    flags.integer("batch", &batch, "images of one step", kSize);
    flags.integer("stages", &stages, "pipeline stages, 1 to 3; each has the ranks of --mesh or --devices", {1, 3});
    flags.toggle("tensor-parallel", &tensorParallel, "channels split over mesh axis tp");
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

absl::Status train(const ResnetFlags& flags, const ImageSplits& images, const Program& program,
                   const Program& evaluation) {
  Trainer trainer(program, flags.common.trainerOptions());
  const int64_t steps = flags.common.steps > 0 ? flags.common.steps : stepsOf(flags.epochs, images.train, flags.batch);
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
    WEFT_ASSIGN_OR_RETURN(const double right, accuracy(trainer, evaluation, images.test, flags.batch));
    std::printf("test accuracy after %lld steps: %.4f\n", static_cast<long long>(steps), right);
    return absl::OkStatus();
  });
}

absl::Status run(const ResnetFlags& flags) {
  // Mean and deviation of Fashion-MNIST's training pixels.
  WEFT_ASSIGN_OR_RETURN(
      const ImageSplits images,
      openImages(flags.data, {.seed = static_cast<uint64_t>(flags.common.seed), .mean = 0.286, .deviation = 0.353}));
  Graph graph;
  const ResnetConfig config = configOf(flags, images.train);
  const ResnetModel model = buildResnet(graph, config);
  if (flags.tensorParallel) {
    graph.shard(resnetSharding(flags.common.parallel(false)));
  }
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
  metric("accuracy", compare(argmax(evaluationModel.logits, -1), evaluationModel.labels, "eq"));
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, Tensor(), forwardOptions(program, options)));
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
