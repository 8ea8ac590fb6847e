#include "kernels/describe/describe.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string>

#include "kernels/describe/contraction.h"
#include "kernels/describe/convolution.h"
#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

int64_t sumOf(std::initializer_list<int64_t> terms) {
  int64_t sum = 0;
  for (const int64_t term : terms) {
    sum = boundedSum(sum, term);
  }
  return sum;
}

// Dimension d of a tensor that may not have it.
int64_t sizeAt(const TensorSpec& tensor, size_t d) {
  return d < tensor.shape.size() ? tensor.shape[d] : 1;
}

// Packed copies and the product's own scratch. What makes no product is refused when its kernel is made.
int64_t contractionBound(const KernelSpec& spec) {
  const size_t inputs = spec.name == kContractAccumulateKernel ? 3 : 2;
  if (spec.inputs.size() != inputs || spec.outputs.size() != 1) {
    return 0;
  }
  const absl::StatusOr<Contraction> made = contractionOf(spec);
  if (!made.ok()) {
    return 0;
  }
  const DType type = spec.inputs[0].type;
  return sumOf({gemmScratchLimit(type, made->product), made->a.packedBytes(type), made->b.packedBytes(type),
                made->c.packedBytes(type)});
}

// The sizes of one head of attention.
struct Head {
  DType type;
  int64_t rows, keys, width;

  int64_t scoreBytes() const { return alignUp(TensorSpec{type, {rows, keys}}.bytes()); }
  // Scores from rows and keys, rows from scores and keys, keys from scores and rows.
  int64_t productBytes() const {
    return std::max({gemmScratchLimit(type, {1, rows, keys, width}), gemmScratchLimit(type, {1, rows, width, keys}),
                     gemmScratchLimit(type, {1, keys, width, rows})});
  }
};
Head headOf(const KernelSpec& spec) {
  return {spec.inputs[0].type, sizeAt(spec.inputs[0], 2), sizeAt(spec.inputs[1], 2), sizeAt(spec.inputs[0], 3)};
}

int64_t attentionBound(const KernelSpec& spec) {
  if (spec.inputs.size() < 2) {
    return 0;
  }
  const Head head = headOf(spec);
  return sumOf({head.productBytes(), head.scoreBytes()});
}

// The gradients of the scores too, one number for each query, and where heads share keys their gradient by one head.
int64_t attentionGradientBound(const KernelSpec& spec) {
  if (spec.inputs.size() < 2) {
    return 0;
  }
  const Head head = headOf(spec);
  const bool shared = sizeAt(spec.inputs[0], 1) != sizeAt(spec.inputs[1], 1);
  const int64_t part = shared ? alignUp(TensorSpec{head.type, {head.keys, head.width}}.bytes()) : 0;
  return sumOf({head.productBytes(), head.scoreBytes(), head.scoreBytes(),
                alignUp(boundedProduct(head.rows, byteSize(head.type))), part});
}

bool fourDims(const TensorSpec& tensor) {
  return tensor.shape.size() == 4;
}

// The columns of one block, one product (the weight's gradient adds up such), and the product's own scratch.
int64_t convolutionBound(const KernelSpec& spec) {
  if (spec.inputs.size() != 2 || spec.outputs.size() != 1) {
    return 0;
  }
  const ConvolutionTensors tensors = convolutionTensors(spec);
  if (!fourDims(tensors.x) || !fourDims(tensors.weight) || !fourDims(tensors.y)) {
    return 0;
  }
  // The products are y = w x, x = w y and w = y x, of the weight [co, depth] and the columns [depth, places].
  const int64_t co = tensors.weight.shape[0];
  const int64_t depth =
      boundedElements(std::array{tensors.weight.shape[1], tensors.weight.shape[2], tensors.weight.shape[3]});
  const ConvolutionBlock block = convolutionBlock(tensors);
  const int64_t places = boundedElements(std::array{block.samples, block.rows, tensors.y.shape[3]});
  const DType type = tensors.x.type;
  const int64_t product =
      std::max({gemmScratchLimit(type, {1, co, places, depth}), gemmScratchLimit(type, {1, depth, places, co}),
                gemmScratchLimit(type, {1, co, depth, places})});
  const ConvolutionPackedBytes packed = convolutionPackedBytes(tensors);
  return sumOf({product, alignUp(convolutionColumnBytes(tensors)), alignUp(packed.image), alignUp(packed.result),
                alignUp(tensors.weight.bytes())});
}

// The sums of two vectors.
int64_t layerNormGradientBound(const KernelSpec& spec) {
  constexpr auto kSums = 2 * static_cast<int64_t>(sizeof(double));
  return spec.inputs.size() < 2 ? 0 : boundedProduct(spec.inputs[1].elements(), kSums);
}

// The sum of one vector.
int64_t rmsNormGradientBound(const KernelSpec& spec) {
  constexpr auto kSum = static_cast<int64_t>(sizeof(double));
  return spec.inputs.size() < 2 ? 0 : boundedProduct(spec.inputs[1].elements(), kSum);
}

// A total of 8 bytes for each element of the result.
int64_t totalsBound(const KernelSpec& spec) {
  constexpr auto kTotal = static_cast<int64_t>(sizeof(double));
  return spec.outputs.empty() ? 0 : boundedProduct(spec.outputs[0].elements(), kTotal);
}

// A total of 8 bytes for each element of the dimensions behind `dim`.
int64_t alongBound(const KernelSpec& spec) {
  const absl::StatusOr<int64_t> dim = attributeOr<int64_t>(spec.attributes, "dim", 0);
  if (spec.inputs.empty() || !dim.ok() || *dim < 0 || *dim >= static_cast<int64_t>(spec.inputs[0].shape.size())) {
    return 0;
  }
  const std::vector<int64_t>& shape = spec.inputs[0].shape;
  const std::vector<int64_t> inner(shape.begin() + *dim + 1, shape.end());
  return TensorSpec{DType::kF64, inner}.bytes();
}

// An i32 for each element of a row.
int64_t sortBound(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.inputs[0].shape.empty()) {
    return 0;
  }
  return TensorSpec{DType::kI32, {spec.inputs[0].shape.back()}}.bytes();
}

int64_t noScratch(const KernelSpec& /*spec*/) {
  return 0;
}

struct CpuKernel {
  int64_t (*scratch)(const KernelSpec&) = noScratch;
  std::vector<InPlacePair> inPlace = {};  // where the tensors fit
};

// What is not listed needs no scratch memory and reads its inputs until it ends.
const std::map<std::string, CpuKernel>& cpuKernelFacts() {
  static const std::map<std::string, CpuKernel> kernels = [] {
    std::map<std::string, CpuKernel> made = {
        {kMatmulKernel, {contractionBound}},
        {kContractKernel, {contractionBound}},
        {kContractAccumulateKernel, {contractionBound, {{0, 0}}}},
        {"attention", {attentionBound}},
        {"attention_grad", {attentionGradientBound}},
        {"conv2d", {convolutionBound}},
        {"conv2d_input_grad", {convolutionBound}},
        {"conv2d_weight_grad", {convolutionBound}},
        {"sum", {totalsBound}},
        {"mean", {totalsBound}},
        {"cumsum", {alongBound, {{0, 0}}}},
        {"prod", {alongBound}},
        {"prod_grad", {alongBound}},
        {"sort", {sortBound}},
        {"channel_sum", {totalsBound}},
        {"channel_dot", {totalsBound}},
        {"layer_norm_grad", {layerNormGradientBound, {{0, 0}, {4, 0}}}},
        {"rms_norm_grad", {rmsNormGradientBound, {{0, 0}, {3, 0}}}},
        {"select", {noScratch, {{1, 0}, {2, 0}}}},
        {"sgd", {noScratch, {{0, 0}, {2, 1}}}},
        {"adam", {noScratch, {{0, 0}, {2, 1}, {3, 2}}}},
        {"adam_direction", {noScratch, {{0, 0}, {1, 1}, {2, 2}}}},
        {"rms_direction", {noScratch, {{0, 0}, {1, 1}}}},
        {"lion_direction", {noScratch, {{0, 0}, {1, 1}}}},
        {"descend", {noScratch, {{0, 0}, {1, 0}}}},
    };
    for (const char* name : {"neg",
                             "exp",
                             "log",
                             "sqrt",
                             "rsqrt",
                             "tanh",
                             "relu",
                             "gelu",
                             "abs",
                             "sign",
                             "floor",
                             "ceil",
                             "erf",
                             "sin",
                             "cos",
                             "sigmoid",
                             "silu",
                             "softplus",
                             "hard_swish",
                             "leaky_relu",
                             "elu",
                             "reshape",
                             "softmax",
                             "log_softmax",
                             "dropout",
                             "mask_pad",
                             "accumulate",
                             "dynamic_update_slice",
                             "layer_norm",
                             "rms_norm",
                             "rotary",
                             "channel_affine",
                             "softmax_cross_entropy_grad"}) {
      made[name].inPlace = {{0, 0}};
    }
    for (const char* name : {"relu_grad", "gelu_grad", "tanh_grad", "sigmoid_grad", "silu_grad", "softplus_grad",
                             "hard_swish_grad", "leaky_relu_grad", "elu_grad", "softmax_grad", "log_softmax_grad",
                             "add", "sub", "mul", "div", "pow", "maximum", "minimum"}) {
      made[name].inPlace = {{0, 0}, {1, 0}};
    }
    return made;
  }();
  return kernels;
}

bool fit(const KernelSpec& spec, const InPlacePair& pair) {
  return pair.input < spec.inputs.size() && pair.output < spec.outputs.size() &&
         spec.inputs[pair.input].type == spec.outputs[pair.output].type &&
         spec.inputs[pair.input].bytes() == spec.outputs[pair.output].bytes();
}

// Of a kernel that is not built in, by what its attributes say; what does not have the form of a pair is none.
KernelDescription describeItself(const KernelSpec& spec) {
  using Numbers = std::vector<int64_t>;
  const Numbers scratch = attributeOr<Numbers>(spec.attributes, kScratchAttribute, {}).value_or(Numbers());
  const Numbers pairs = attributeOr<Numbers>(spec.attributes, kInPlaceAttribute, {}).value_or(Numbers());
  KernelDescription description;
  if (scratch.size() == 2) {
    int64_t elements = 0;
    for (const TensorSpec& output : spec.outputs) {
      elements = boundedSum(elements, output.elements());
    }
    description.workspaceBytes =
        boundedSum(std::max<int64_t>(scratch[0], 0), boundedProduct(std::max<int64_t>(scratch[1], 0), elements));
  }
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const InPlacePair pair = {static_cast<size_t>(pairs[i]), static_cast<size_t>(pairs[i + 1])};
    if (fit(spec, pair)) {
      description.inPlace.push_back(pair);
    }
  }
  return description;
}

KernelDescription describeOnCpu(const KernelSpec& spec) {
  const auto known = cpuKernelFacts().find(spec.name);
  if (known == cpuKernelFacts().end()) {
    return describeItself(spec);
  }
  KernelDescription description = {known->second.scratch(spec), {}};
  std::copy_if(known->second.inPlace.begin(), known->second.inPlace.end(), std::back_inserter(description.inPlace),
               [&](const InPlacePair& pair) { return fit(spec, pair); });
  return description;
}

}  // namespace

bool KernelDescription::mayRunInPlace(size_t input, size_t output) const {
  return std::find(inPlace.begin(), inPlace.end(), InPlacePair{input, output}) != inPlace.end();
}

KernelDescription describe(const KernelSpec& spec, Target target) {
  switch (target) {
    case Target::kCpu:
      return describeOnCpu(spec);
  }
}

}  // namespace weft
