// What the compiler and the kernels both know of convolutions: how an image is cut into blocks, and the scratch memory
// that needs.
//
// A block is some rows of a sample's result. For each place of the window in the block, the elements under it are
// gathered into a column of a matrix, and the convolution is the product of the weight with that matrix.
#pragma once

#include "kernels/describe/kernel_spec.h"

namespace weft {

// The gathered columns of one block stay within this, so that they are still in the cache when they are multiplied;
// one row of the result is the least.
inline constexpr int64_t kConvolutionBlockBytes = int64_t{1} << 19;

// The three tensors of conv2d, conv2d_input_grad and conv2d_weight_grad, whichever of them are results. What images
// have before their channels is one dimension here, n.
struct ConvolutionTensors {
  TensorSpec x;       // [n, ci, h, w]
  TensorSpec weight;  // [co, ci, kh, kw]
  TensorSpec y;       // [n, co, ho, wo]
};
// `spec` has two inputs and one output. Images of fewer than four dimensions stay as they are.
ConvolutionTensors convolutionTensors(const KernelSpec& spec);

// Rows of the result in one block. All tensors have four dimensions.
int64_t convolutionBlockRows(const ConvolutionTensors& tensors);
// Bytes of the gathered columns of one block.
int64_t convolutionColumnBytes(const ConvolutionTensors& tensors);

}  // namespace weft
