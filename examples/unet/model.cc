#include "examples/unet/model.h"

#include <string>

namespace weft::examples {
namespace {

class Levels {
 public:
  Levels(Graph& g, const UnetConfig& config) : g_(g), config_(config) {}

  // Two convolutions beside a shortcut.
  Tensor block(const std::string& name, const Tensor& x, int64_t out) const {
    const Scope scope = g_.scope(name);
    const Tensor h = convolution("conv1", x, out);
    const Tensor past = x.dim(1) == out ? x : nn::Conv2d(g_, "skip", x.dim(1), out, 1)(x);
    return past + convolution("conv2", h, out);
  }

 private:
  Tensor convolution(const char* name, const Tensor& x, int64_t out) const {
    const Tensor y = nn::Conv2d(g_, name, x.dim(1), out, 3, {.padding = 1, .bias = false})(x);
    return silu(nn::GroupNorm(g_, std::string(name) + "_norm", config_.groups, out)(y));
  }

  Graph& g_;
  const UnetConfig& config_;
};

Tensor resized(const Tensor& x, const Tensor& like) {
  return interpolate(x, {like.dim(2), like.dim(3)});
}

}  // namespace

UnetModel buildUnet(Graph& g, const UnetConfig& config) {
  UnetModel model;
  const Shape images = {config.batch, config.channels, config.rows, config.columns};
  model.noisy = g.input("x", images);
  model.noise = g.input("noise", images);
  const Levels levels(g, config);
  const auto stage = [&](int64_t part) { return g.stage(static_cast<int>(part * config.stages / 3)); };
  Tensor high;
  Tensor low;
  Tensor h;
  {
    const Scope down = stage(0);
    high = levels.block("down0", model.noisy, config.width);
    low = levels.block("down1", nn::MaxPool2d(2)(high), 2 * config.width);
  }
  {
    const Scope bottom = stage(1);
    h = levels.block("bottom", nn::MaxPool2d(2)(low), 4 * config.width);
  }
  const Scope up = stage(2);
  h = levels.block("up1", concat({resized(h, low), low}, 1), 2 * config.width);
  h = levels.block("up0", concat({resized(h, high), high}, 1), config.width);
  model.found = nn::Conv2d(g, "last", config.width, config.channels, 1, {.init = Init::normal(0.05)})(h);
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
