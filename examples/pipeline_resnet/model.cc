#include "examples/pipeline_resnet/model.h"

#include <string>

namespace weft::examples {
namespace {

// A convolution without bias and its norm.
Tensor convNorm(Graph& g, const std::string& name, const Tensor& x, int64_t out, const nn::Conv2dSettings& settings,
                const ResnetConfig& config) {
  const int64_t kernel = 1 + 2 * settings.padding;
  const Tensor y = nn::Conv2d(g, name, x.dim(1), out, kernel, settings)(x);
  return nn::BatchNorm2d(g, name + "_norm", out, {.training = config.training})(y);
}

Tensor basicBlock(Graph& g, const std::string& name, const Tensor& x, int64_t width, int64_t stride,
                  const ResnetConfig& config) {
  const auto scope = g.scope(name);
  Tensor h = relu(convNorm(g, "conv1", x, width, {.stride = stride, .padding = 1, .bias = false}, config));
  h = convNorm(g, "conv2", h, width, {.padding = 1, .bias = false}, config);
  const bool changes = stride != 1 || x.dim(1) != width;
  const Tensor past = changes ? convNorm(g, "skip", x, width, {.stride = stride, .bias = false}, config) : x;
  return relu(add(h, past));
}

}  // namespace

ResnetModel buildResnet(Graph& g, const ResnetConfig& config) {
  ResnetModel model;
  model.images = g.input("x", {config.batch, config.channels, config.rows, config.columns});
  model.labels = g.input("y", {config.batch}, kI32);
  const auto blocks = static_cast<int64_t>(config.widths.size());
  Tensor h;
  {
    const auto stage = g.stage(0);
    h = relu(convNorm(g, "stem", model.images, config.stem, {.padding = 1, .bias = false}, config));
    h = nn::MaxPool2d(2)(h);
  }
  for (int64_t i = 0; i < blocks; ++i) {
    const auto stage = g.stage(static_cast<int>(i * config.stages / blocks));
    h = basicBlock(g, "block" + std::to_string(i), h, config.widths[i], i == 0 ? 1 : 2, config);
  }
  const auto stage = g.stage(static_cast<int>(config.stages - 1));
  const Tensor features = mean(h, {2, 3});
  model.logits = nn::Linear(g, "head", features.dim(1), config.classes, {.init = Init::normal(0.05)})(features);
  model.loss = mean(softmaxCrossEntropy(model.logits, model.labels));
  return model;
}

}  // namespace weft::examples
