#include "kernels/describe/kernel_spec.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "kernels/describe/convolution.h"

namespace weft {
namespace {

int64_t aligned(int64_t bytes) {
  return boundedProduct(boundedSum(bytes, 63) / 64, 64);
}

int64_t sumOf(std::initializer_list<int64_t> terms) {
  int64_t sum = 0;
  for (const int64_t term : terms) {
    sum = boundedSum(sum, term);
  }
  return sum;
}

bool oneOf(const std::string& kernel, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return kernel == name; });
}

// Dimension d of a tensor that may not have it.
int64_t sizeAt(const TensorSpec& tensor, size_t d) {
  return d < tensor.shape.size() ? tensor.shape[d] : 1;
}

// Packed copies of both operands and the result, and the product's own scratch.
int64_t contractionBound(const KernelSpec& spec) {
  int64_t bytes = kGemmScratchLimit;
  for (const auto* tensors : {&spec.inputs, &spec.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      bytes = boundedSum(bytes, aligned(tensor.bytes()));
    }
  }
  return bytes;
}

// Scores of one head; the gradient keeps theirs too, and one number per query.
int64_t attentionBound(const KernelSpec& spec) {
  const int64_t rows = sizeAt(spec.inputs[0], 2);
  const int64_t element = byteSize(spec.inputs[0].type);
  const int64_t scores = aligned(boundedElements(std::array{rows, sizeAt(spec.inputs[1], 2), element}));
  return spec.name == "attention" ? sumOf({kGemmScratchLimit, scores})
                                  : sumOf({kGemmScratchLimit, scores, scores, aligned(boundedProduct(rows, element))});
}

bool fourDims(const TensorSpec& tensor) {
  return tensor.shape.size() == 4;
}

// The columns of one block, one product (the weight's gradient adds up such), and the product's own scratch.
int64_t convolutionBound(const KernelSpec& spec) {
  const ConvolutionTensors tensors = convolutionTensors(spec);
  if (!fourDims(tensors.x) || !fourDims(tensors.weight) || !fourDims(tensors.y)) {
    return 0;
  }
  return sumOf({kGemmScratchLimit, aligned(convolutionColumnBytes(tensors)), aligned(tensors.weight.bytes())});
}

}  // namespace

int64_t workspaceBound(const KernelSpec& spec) {
  if (oneOf(spec.name, {"matmul", "contract"})) {
    return contractionBound(spec);
  }
  if (oneOf(spec.name, {"attention", "attention_grad"}) && spec.inputs.size() >= 2) {
    return attentionBound(spec);
  }
  if (oneOf(spec.name, {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"}) && spec.inputs.size() == 2 &&
      spec.outputs.size() == 1) {
    return convolutionBound(spec);
  }
  if (spec.name == "layer_norm_grad" && spec.inputs.size() >= 2) {
    // The sums of two vectors.
    return boundedProduct(spec.inputs[1].elements(), 2 * static_cast<int64_t>(sizeof(double)));
  }
  if (oneOf(spec.name, {"sum", "mean", "channel_sum", "channel_dot"}) && !spec.outputs.empty()) {
    // A total of 8 bytes for each element of the result.
    return boundedProduct(spec.outputs[0].elements(), static_cast<int64_t>(sizeof(double)));
  }
  return 0;
}

bool mayRunInPlace(const std::string& kernel, size_t input) {
  if (oneOf(kernel,
            {"neg", "exp", "log", "sqrt", "rsqrt", "tanh", "relu", "gelu", "reshape", "softmax", "dropout", "mask_pad",
             "accumulate", "layer_norm", "channel_affine", "softmax_cross_entropy_grad", "sgd", "adam"})) {
    return input == 0;
  }
  if (oneOf(kernel, {"relu_grad", "gelu_grad", "tanh_grad", "softmax_grad", "add", "sub", "mul", "div", "maximum",
                     "minimum"})) {
    return input <= 1;
  }
  if (kernel == "layer_norm_grad") {
    return input == 0 || input == 4;
  }
  return kernel == "select" && (input == 1 || input == 2);
}

}  // namespace weft
