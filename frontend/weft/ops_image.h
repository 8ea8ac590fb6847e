// Images: convolutions, pooling, resizing, normalization of channels. See weft/ops.h.
//
// Images are [n, channels, height, width]; pairs are {vertical, horizontal}.
#pragma once

#include "weft/ops_base.h"

namespace weft {

struct Conv2dOptions {
  Shape strides = {1, 1};
  Shape paddings = {0, 0};   // zeros on both sides
  Shape dilations = {1, 1};  // distance of the window's elements
  int64_t groups = 1;        // each convolves its part of the channels alone
};
// x [n, ci, h, w] with weight [co, ci / groups, kh, kw] -> [n, co, ho, wo],
// ho = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options = {},
              SourceLine at = SourceLine::current());
struct ConvTranspose2dOptions {
  Shape strides = {1, 1};
  Shape paddings = {0, 0};        // rows and columns less on both sides
  Shape outputPaddings = {0, 0};  // rows below and columns to the right more; less than the strides
  Shape dilations = {1, 1};
  int64_t groups = 1;
};
// The gradient of conv2d as a layer of its own: x [n, ci, h, w] with weight [ci, co / groups, kh, kw] -> [n, co, ho,
// wo], ho = (h - 1) stride - 2 padding + dilation (kh - 1) + output padding + 1.
Tensor convTranspose2d(const Tensor& x, const Tensor& weight, const ConvTranspose2dOptions& options = {},
                       SourceLine at = SourceLine::current());
struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
};
// x [n, ci, length] with weight [co, ci / groups, k] -> [n, co, length'].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Conv1dOptions& options = {},
              SourceLine at = SourceLine::current());

struct Pool2dOptions {
  Shape strides = {};       // the window's size unless given
  Shape paddings = {0, 0};  // smaller than the window
};
Tensor maxPool2d(const Tensor& x, const Shape& window, const Pool2dOptions& options = {},
                 SourceLine at = SourceLine::current());
// Divides by the window's size, padding included.
Tensor avgPool2d(const Tensor& x, const Shape& window, const Pool2dOptions& options = {},
                 SourceLine at = SourceLine::current());
// The mean of as many windows as `size` says: window i of a dimension of size s into n is [floor(i s / n), ceil((i + 1)
// s / n)).
Tensor adaptiveAvgPool2d(const Tensor& x, const Shape& size, SourceLine at = SourceLine::current());

enum class Interpolation : uint8_t { kNearest, kBilinear };
// x at another size. Nearest: element floor(i s / n) of s for place i of n. Bilinear: the two nearest in each
// direction, with pixels as areas (the corners of the images, not the centers of their corner pixels, fall together).
Tensor interpolate(const Tensor& x, const Shape& size, Interpolation form = Interpolation::kNearest,
                   SourceLine at = SourceLine::current());

// gamma (x - mean) / sqrt(variance + epsilon) + beta for x [n, c, ...] with the mean and variance of each sample's
// group of c / groups channels (Wu and He, "Group normalization", 2018); gamma, beta [c].
Tensor groupNorm(const Tensor& x, int64_t groups, const Tensor& gamma, const Tensor& beta, double epsilon = 1e-5,
                 SourceLine at = SourceLine::current());
// Each channel a group of its own.
Tensor instanceNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon = 1e-5,
                    SourceLine at = SourceLine::current());

}  // namespace weft
