#include "kernels/describe/kernel_spec.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

// Kernels that read an element of an input before they write the same element of output 0, and read nothing else of it.
const std::set<std::string>& elementwiseKernels() {
  static const std::set<std::string> kNames = {"neg",       "exp",       "log",       "sqrt",
                                               "rsqrt",     "tanh",      "relu",      "gelu",
                                               "relu_grad", "gelu_grad", "tanh_grad", "add",
                                               "sub",       "mul",       "div",       "maximum",
                                               "minimum",   "dropout",   "mask_pad",  "softmax_cross_entropy_grad"};
  return kNames;
}

}  // namespace

int64_t TensorSpec::elements() const {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    elements *= size;
  }
  return elements;
}

int64_t workspaceBound(const KernelSpec& spec) {
  int64_t inputs = 0;
  for (const TensorSpec& input : spec.inputs) {
    inputs += (input.bytes() + 63) / 64 * 64;
  }
  int64_t outputs = 0;
  for (const TensorSpec& output : spec.outputs) {
    outputs += (output.bytes() + 63) / 64 * 64;
  }
  if (spec.name == "matmul" || spec.name == "contract") {
    // Packed copies of both operands and the result; room for the library's own packing.
    return inputs + outputs + (int64_t{1} << 20);
  }
  if (spec.name == "attention" || spec.name == "attention_grad") {
    // Scores and their gradient of one head.
    const int64_t rows = spec.inputs[0].shape[2];
    const int64_t columns = spec.inputs[1].shape[2];
    return 2 * rows * columns * byteSize(spec.inputs[0].type) + rows * byteSize(spec.inputs[0].type) +
           (int64_t{1} << 20);
  }
  if (spec.name == "layer_norm_grad") {
    return 2 * spec.inputs[1].elements() * static_cast<int64_t>(sizeof(double));
  }
  if (spec.name == "sum" || spec.name == "mean") {
    return spec.outputs[0].elements() * static_cast<int64_t>(sizeof(double));
  }
  return 0;
}

bool mayRunInPlace(const std::string& kernel, size_t input) {
  if (kernel == "accumulate") {
    return input == 0;
  }
  if (kernel == "softmax_cross_entropy_grad" || kernel == "dropout" || kernel == "mask_pad") {
    return input == 0;
  }
  return elementwiseKernels().count(kernel) > 0;
}

}  // namespace weft
