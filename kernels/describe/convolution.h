// What the compiler and the kernels both know of convolutions: how images are cut into blocks, and the scratch memory
// that needs.
//
// A block is some rows of a sample's result, or all of the results of several samples where these are small. For each
// place of the window in the block, the elements under it are gathered into a column of a matrix, and the convolution
// is the product of the weight with that matrix.
#pragma once

#include "kernels/describe/kernel_spec.h"

namespace weft {

// The gathered columns of one block stay within this, so that they are still in the cache when they are multiplied;
// one row of the result is the least.
inline constexpr int64_t kConvolutionBlockBytes = int64_t{1} << 19;
// Columns of a block of several samples at most: a product gains little from more of them.
inline constexpr int64_t kConvolutionBlockPlaces = 256;

// The three tensors of conv2d, conv2d_input_grad and conv2d_weight_grad, whichever of them are results. What images
// have before their channels is one dimension here, n.
struct ConvolutionTensors {
  TensorSpec x;       // [n, ci, h, w]
  TensorSpec weight;  // [co, ci, kh, kw]
  TensorSpec y;       // [n, co, ho, wo]
};
// `spec` has two inputs and one output. Images of fewer than four dimensions stay as they are.
ConvolutionTensors convolutionTensors(const KernelSpec& spec);

// The largest block of a convolution; the last may be smaller.
struct ConvolutionBlock {
  int64_t samples = 1;
  int64_t rows = 1;  // of the result of each; of several samples all
};
// All tensors have four dimensions.
ConvolutionBlock convolutionBlock(const ConvolutionTensors& tensors);
// Bytes of the gathered columns of one block.
int64_t convolutionColumnBytes(const ConvolutionTensors& tensors);
// Bytes of the block's image and of its result with samples innermost; nothing of blocks of one sample, which are used
// where they lie.
struct ConvolutionPackedBytes {
  int64_t image = 0;
  int64_t result = 0;
};
ConvolutionPackedBytes convolutionPackedBytes(const ConvolutionTensors& tensors);

}  // namespace weft
