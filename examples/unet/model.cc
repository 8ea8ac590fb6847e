#include "examples/unet/model.h"

#include <string>

namespace weft::examples {
namespace {

// A convolution, its norm and silu.
Tensor convolution(Graph& g, const std::string& name, const Tensor& x, int64_t out, int64_t groups) {
  const Tensor y = nn::Conv2d(g, name, x.dim(1), out, 3, {.padding = 1, .bias = false})(x);
  return silu(nn::GroupNorm(g, name + "_norm", groups, out)(y));
}

// Two convolutions beside a shortcut.
Tensor block(Graph& g, const std::string& name, const Tensor& x, int64_t out, int64_t groups) {
  const Scope scope = g.scope(name);
  const Tensor h = convolution(g, "conv1", x, out, groups);
  const Tensor past = x.dim(1) == out ? x : nn::Conv2d(g, "skip", x.dim(1), out, 1)(x);
  return past + convolution(g, "conv2", h, out, groups);
}

// h at the size of what went past it, and that, as channels of one image.
Tensor joined(const Tensor& h, const Tensor& past) {
  return concat({interpolate(h, {past.dim(2), past.dim(3)}), past}, 1);
}

}  // namespace

Tensor unet(Graph& g, const UnetConfig& config, const Tensor& noisy) {
  const int64_t width = config.width;
  const auto stage = [&](int64_t part) { return g.stage(nn::stageOf(part, 3, config.stages)); };
  Tensor high, low, h;
  {
    const Scope down = stage(0);
    high = block(g, "down0", noisy, width, config.groups);
    low = block(g, "down1", nn::MaxPool2d(2)(high), 2 * width, config.groups);
  }
  {
    const Scope bottom = stage(1);
    h = block(g, "bottom", nn::MaxPool2d(2)(low), 4 * width, config.groups);
  }
  const Scope up = stage(2);
  h = block(g, "up1", joined(h, low), 2 * width, config.groups);
  h = block(g, "up0", joined(h, high), width, config.groups);
  return nn::Conv2d(g, "last", width, config.channels, 1, {.init = Init::normal(0.05)})(h);
}

UnetModel buildUnet(Graph& g, const UnetConfig& config) {
  UnetModel model;
  const Shape images = {config.batch, config.channels, config.rows, config.columns};
  model.noisy = g.input("x", images);
  model.noise = g.input("noise", images);
  model.found = unet(g, config, model.noisy);
  model.loss = mseLoss(model.found, model.noise);
  return model;
}

ShardingTable unetSharding(const nn::Parallel& parallel) {
  return {
      {"*.conv1", {{parallel.data, "", "", ""}, {parallel.model, "", "", ""}}},
      {"*.conv2", {{parallel.data, parallel.model, "", ""}, {"", parallel.model, "", ""}}},
  };
}

}  // namespace weft::examples
