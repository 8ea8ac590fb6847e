#include "examples/resnet/model.h"

#include <string>

namespace weft::examples {
namespace {

// A convolution without bias and its norm; the image keeps its size but for the stride.
Tensor convNorm(Graph& g, const std::string& name, const Tensor& x, int64_t out, int64_t kernel, int64_t stride,
                bool training) {
  const nn::Conv2dSettings settings = {.stride = stride, .padding = kernel / 2, .bias = false};
  const Tensor y = nn::Conv2d(g, name, x.dim(1), out, kernel, settings)(x);
  return nn::BatchNorm2d(g, name + "_norm", out, {.training = training})(y);
}

// Two convolutions beside a shortcut.
Tensor basicBlock(Graph& g, const std::string& name, const Tensor& x, int64_t width, int64_t stride, bool training) {
  const Scope scope = g.scope(name);
  const Tensor h = relu(convNorm(g, "conv1", x, width, 3, stride, training));
  const Tensor y = convNorm(g, "conv2", h, width, 3, 1, training);
  const bool changes = stride != 1 || x.dim(1) != width;
  return relu(y + (changes ? convNorm(g, "skip", x, width, 1, stride, training) : x));
}

}  // namespace

Tensor resnet(Graph& g, const ResnetConfig& config, const Tensor& images) {
  const auto blocks = static_cast<int64_t>(config.widths.size());
  Tensor h;
  {
    const Scope stage = g.stage(0);
    h = relu(convNorm(g, "stem", images, config.stem, 3, 1, config.training));
    h = nn::MaxPool2d(2)(h);
  }
  for (int64_t i = 0; i < blocks; ++i) {
    const Scope stage = g.stage(nn::stageOf(i, blocks, config.stages));
    h = basicBlock(g, "block" + std::to_string(i), h, config.widths[i], i == 0 ? 1 : 2, config.training);
  }
  h = mean(h, {2, 3});
  return nn::Linear(g, "head", h.dim(1), config.classes, {.init = Init::normal(0.05)})(h);
}

ResnetModel buildResnet(Graph& g, const ResnetConfig& config) {
  ResnetModel model;
  model.images = g.input("x", {config.batch, config.channels, config.rows, config.columns});
  model.labels = g.input("y", {config.batch}, kI32);
  model.logits = resnet(g, config, model.images);
  model.loss = mean(softmaxCrossEntropy(model.logits, model.labels));
  return model;
}

ShardingTable resnetSharding(const nn::Parallel& parallel) {
  return {
      {"*.conv1", {{parallel.data, "", "", ""}, {parallel.model, "", "", ""}}},
      {"*.conv2", {{parallel.data, parallel.model, "", ""}, {"", parallel.model, "", ""}}},
  };
}

}  // namespace weft::examples
