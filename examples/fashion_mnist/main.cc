// Trains a perceptron of two layers on images and counts the right answers.

#include <cstdio>

#include "examples/common/flags.h"
#include "examples/common/images.h"
#include "runtime/base/status.h"
#include "weft/weft.h"

namespace weft::examples {
namespace {

struct MnistFlags {
  CommonFlags common;
  std::string data;
  int64_t batch = 128;
  int64_t hidden = 300;
  double epochs = 5;
  double lr = 1.5e-4;
  bool tensorParallel = false;

  void addTo(Flags& flags) {
    common.steps = 0;
    common.addTo(flags);
    flags.text("data", &data, "directory of Fashion-MNIST's four IDX files; default: the test data, else drawn images");
    flags.integer("batch", &batch, "images of one step", kSize);
    flags.integer("hidden", &hidden, "units between the layers", kSize);
    flags.real("epochs", &epochs, "passes over the training images, where --steps is 0", {0, 1e6});
    flags.real("lr", &lr, "learning rate of Adam");
    flags.toggle("tensor-parallel", &tensorParallel, "hidden units split over mesh axis tp");
  }
};

// Logits [batch, classes] of images [batch, pixels].
Tensor perceptron(Graph& g, const Tensor& x, int64_t hidden, int64_t classes) {
  const nn::Linear fc1(g, "fc1", x.dim(1), hidden);
  const nn::Linear fc2(g, "fc2", hidden, classes);
  return fc2(relu(fc1(x)));
}

struct Model {
  Tensor labels;
  Tensor logits;
  Tensor loss;
};

Model build(Graph& g, const MnistFlags& flags, const ImageDataset& data) {
  const Tensor x = g.input("x", {flags.batch, data.rows() * data.columns()});
  const Tensor y = g.input("y", {flags.batch}, kI32);
  const Tensor logits = perceptron(g, x, flags.hidden, data.classes());
  if (flags.tensorParallel) {
    // Each rank has some of the hidden units: the columns of fc1, the rows of fc2.
    const nn::Parallel axes = flags.common.parallel(false);
    g.shard({{"fc1", {{axes.data, ""}, {"", axes.model}}}, {"fc2", {{axes.data, axes.model}, {axes.model, ""}}}});
  }
  return {y, logits, mean(softmaxCrossEntropy(logits, y))};
}

absl::Status run(const MnistFlags& flags) {
  // Pixels are divided by 255, and left at that.
  WEFT_ASSIGN_OR_RETURN(const ImageSplits images,
                        openImages(flags.data, {.seed = static_cast<uint64_t>(flags.common.seed)}));
  Graph graph;
  const Model model = build(graph, flags, images.train);
  const CompileOptions options = flags.common.options();
  WEFT_ASSIGN_OR_RETURN(const Program program, compile(graph, model.loss, optim::Adam{.lr = flags.lr}, options));
  printProgram(program);
  absl::Status status;
  if (flags.common.wrotePlan(program, &status)) {
    return status;
  }
  Graph evaluationGraph;
  const Model evaluated = build(evaluationGraph, flags, images.train);
  metric("accuracy", compare(argmax(evaluated.logits, -1), evaluated.labels, "eq"));
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, Tensor(), forwardOptions(program, options)));

  Trainer trainer(program, flags.common.trainerOptions());
  const int64_t steps = flags.common.steps > 0 ? flags.common.steps : stepsOf(flags.epochs, images.train, flags.batch);
  std::vector<float> x(flags.batch * images.train.rows() * images.train.columns());
  std::vector<int32_t> y(flags.batch);
  const auto feed = [&](int64_t step, Feed& inputs) {
    images.train.trainBatch(step, flags.batch, x.data(), y.data());
    inputs.write("x", x);
    inputs.write("y", y);
  };
  return flags.common.train(trainer, [&]() -> absl::Status {
    WEFT_RETURN_IF_ERROR(trainer.fit(steps, feed));
    std::printf("training loss: %s\n", lossesText(trainer.losses()).c_str());
    WEFT_ASSIGN_OR_RETURN(const double right, accuracy(trainer, evaluation, images.test, flags.batch));
    std::printf("test accuracy after %lld steps: %.4f\n", static_cast<long long>(steps), right);
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::MnistFlags values;
  weft::examples::Flags flags;
  values.addTo(flags);
  return weft::examples::runExample(argc, argv, values.common, flags, [&] { return weft::examples::run(values); });
}
