// One dimension of an image under the windows of a convolution or pooling.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::ir {

struct WindowLine {
  int64_t size = 1;    // of the image
  int64_t places = 1;  // of the window: the size of the result
  int64_t window = 1;  // its elements
  int64_t stride = 1;
  int64_t padding = 0;  // on each side
  int64_t dilation = 1;

  int64_t reach() const { return (window - 1) * dilation + 1; }

  // With `places` blocks of `stride` elements: does each window lie inside of the block of its place?
  bool isPatches() const { return padding == 0 && reach() <= stride && size == places * stride; }

  // Elements that the windows of a block of places read before the elements of the block, and behind them.
  int64_t before() const { return padding; }
  int64_t behind() const { return reach() - stride - padding; }
  // Has every block of places as many elements, of which all are read, and a border before and behind it?
  bool hasBorders() const { return size == places * stride && behind() >= 0 && !isPatches(); }
  // The most places on a side of a block whose windows read elements of the block.
  int64_t placesAround() const { return std::max((reach() - 1 - padding) / stride, (padding + stride - 1) / stride); }
};

}  // namespace weft::ir
