// A small U-Net (Ronneberger et al., "U-Net", 2015) that predicts the noise in an image, written as for one device.
#pragma once

#include "weft/weft.h"

namespace weft::examples {

struct UnetConfig {
  int64_t batch = 64;
  int64_t channels = 1;
  int64_t rows = 28;
  int64_t columns = 28;
  int64_t width = 16;  // channels of the first level; each level below has twice as many
  int64_t groups = 4;  // of the group norms; a divisor of width
  int64_t stages = 1;  // pipeline stages, 1 to 3: the way down, the bottom, the way up
};

struct UnetModel {
  Tensor noisy;  // input "x": [batch, channels, rows, columns]
  Tensor noise;  // input "noise": what was added
  Tensor found;  // the noise that the model sees
  Tensor loss;   // mean of (found - noise)^2
};

// The noise [batch, channels, rows, columns] that it sees in images of that shape.
Tensor unet(Graph& g, const UnetConfig& config, const Tensor& noisy);

// The same with its inputs and its loss.
UnetModel buildUnet(Graph& g, const UnetConfig& config);

// The first convolution of each block split by its output channels, the second by its input channels: one sum over
// `model` for each block. Empty names: not split.
ShardingTable unetSharding(const nn::Parallel& parallel);

}  // namespace weft::examples
