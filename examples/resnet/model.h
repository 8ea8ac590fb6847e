// A small residual network for images, written as for one device, with marks for pipeline stages; and the table that
// splits it.
#pragma once

#include <vector>

#include "weft/weft.h"

namespace weft::examples {

struct ResnetConfig {
  int64_t batch = 128;
  int64_t channels = 1;
  int64_t rows = 28;
  int64_t columns = 28;
  int64_t classes = 10;
  int64_t stem = 16;                            // channels after the first convolution
  std::vector<int64_t> widths = {32, 64, 128};  // one residual block each; each but the first halves the image
  int64_t stages = 1;                           // pipeline stages: the blocks in equal parts, stem first, head last
  bool training = true;  // batch norm with the statistics of the micro-batch, else the running ones
};

struct ResnetModel {
  Tensor images;  // input "x": [batch, channels, rows, columns] f32
  Tensor labels;  // input "y": [batch] i32
  Tensor logits;  // [batch, classes]
  Tensor loss;    // mean cross entropy
};

// He et al., "Deep residual learning for image recognition", 2015: convolution, batch norm, relu and max pooling; basic
// blocks, with a 1 x 1 convolution on the way past a block that changes the shape; mean over the image; linear. Logits
// [batch, classes] of images [batch, channels, rows, columns].
Tensor resnet(Graph& g, const ResnetConfig& config, const Tensor& images);

// The same with its inputs and its loss.
ResnetModel buildResnet(Graph& g, const ResnetConfig& config);

// The first convolution of each block split by its output channels, the second by its input channels: one sum over
// `model` for each block. Empty names: not split.
ShardingTable resnetSharding(const nn::Parallel& parallel);

}  // namespace weft::examples
