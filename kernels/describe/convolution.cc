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

ConvolutionBlock convolutionBlock(const ConvolutionTensors& tensors) {
  const int64_t row = std::max<int64_t>(columnBytesOfRow(tensors), 1);
  const int64_t rows = std::max<int64_t>(tensors.y.shape[2], 1);
  const int64_t fitting = kConvolutionBlockBytes / row;  // rows
  const int64_t places = std::max<int64_t>(boundedProduct(rows, tensors.y.shape[3]), 1);
  const int64_t samples = std::max<int64_t>(tensors.y.shape[0], 1);
  const int64_t most = std::clamp<int64_t>(std::min(fitting / rows, kConvolutionBlockPlaces / places), 1, samples);
  const int64_t blocks = (samples + most - 1) / most;
  return {(samples + blocks - 1) / blocks, std::clamp<int64_t>(fitting, 1, rows)};
}

int64_t convolutionColumnBytes(const ConvolutionTensors& tensors) {
  const ConvolutionBlock block = convolutionBlock(tensors);
  return boundedElements(std::array{block.samples, block.rows, columnBytesOfRow(tensors)});
}

ConvolutionPackedBytes convolutionPackedBytes(const ConvolutionTensors& tensors) {
  const int64_t samples = convolutionBlock(tensors).samples;
  if (samples == 1) {
    return {};
  }
  // Of one group of channels.
  const auto& weight = tensors.weight.shape;
  const auto& x = tensors.x.shape;
  const auto& y = tensors.y.shape;
  const int64_t groups = std::max<int64_t>(weight[1] > 0 ? x[1] / weight[1] : 1, 1);
  const int64_t element = byteSize(tensors.x.type);
  return {boundedElements(std::array{samples, weight[1], x[2], x[3], element}),
          boundedElements(std::array{samples, y[1] / groups, y[2], y[3], element})};
}

}  // namespace weft
