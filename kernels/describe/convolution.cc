#include "kernels/describe/convolution.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

// Bytes of the unfolded patches (im2col) that one row of the result reads.
int64_t columnBytesOfRow(const ConvolutionTensors& tensors) {
  const auto& weight = tensors.weight.shape;
  return boundedElements(std::array{weight[1], weight[2], weight[3], tensors.y.shape[3], byteSize(tensors.x.type)});
}

TensorSpec withOneBatch(TensorSpec image) {
  std::vector<int64_t>& shape = image.shape;
  while (shape.size() > 4) {
    shape[1] = boundedProduct(shape[0], shape[1]);
    shape.erase(shape.begin());
  }
  return image;
}

}  // namespace

ConvolutionTensors convolutionTensors(const KernelSpec& spec) {
  if (spec.name == "conv2d_input_grad") {
    return {withOneBatch(spec.outputs[0]), spec.inputs[1], withOneBatch(spec.inputs[0])};
  }
  if (spec.name == "conv2d_weight_grad") {
    return {withOneBatch(spec.inputs[0]), spec.outputs[0], withOneBatch(spec.inputs[1])};
  }
  return {withOneBatch(spec.inputs[0]), spec.inputs[1], withOneBatch(spec.outputs[0])};
}

int64_t convolutionBlockRows(const ConvolutionTensors& tensors) {
  const int64_t row = std::max<int64_t>(columnBytesOfRow(tensors), 1);
  const int64_t rows = std::max<int64_t>(tensors.y.shape[2], 1);
  return std::clamp<int64_t>(kConvolutionBlockBytes / row, 1, rows);
}

int64_t convolutionColumnBytes(const ConvolutionTensors& tensors) {
  return boundedProduct(convolutionBlockRows(tensors), columnBytesOfRow(tensors));
}

}  // namespace weft
