// Operators from outside, as a user would write them, each with another fact to say: what the public header lets one
// say is tested on these.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "weft/weft.h"

namespace weft::testing {

// A kernel of f32 tensors that is one function.
class FunctionKernel : public Kernel {
 public:
  using Function = std::function<void(const KernelSpec&, const KernelArguments&)>;
  FunctionKernel(KernelSpec spec, Function function, int64_t scratch)
      : spec_(std::move(spec)), function_(std::move(function)), scratch_(scratch) {}

  absl::Status run(const KernelArguments& args) override {
    function_(spec_, args);
    return absl::OkStatus();
  }
  int64_t workspaceBytes() const override { return scratch_; }

 private:
  KernelSpec spec_;
  Function function_;
  int64_t scratch_;
};

inline const float* floats(const KernelArguments& args, size_t i) {
  return static_cast<const float*>(args.inputs[i]);
}
inline float* result(const KernelArguments& args) {
  return static_cast<float*>(args.outputs[0]);
}

inline OwnOperator likeFirst(const std::string& name, size_t operands, const std::string& rule) {
  OwnOperator own;
  own.name = name;
  own.results = [operands](const std::vector<ValueType>& in,
                           const AttributeMap&) -> absl::StatusOr<std::vector<ValueType>> {
    if (in.size() != operands || in[0].shape.size() != 2 || in[0].shape != in.back().shape) {
      return absl::InvalidArgumentError("takes matrices of one shape");
    }
    return std::vector<ValueType>{in[0]};
  };
  own.rule = [rule](const std::vector<ValueType>&) { return rule; };
  return own;
}

// y = a sigmoid(b) (Dauphin et al., "Language modeling with gated convolutional networks", 2017). Over one of its
// operands in place; neither gradient is the other's.
inline OwnOperator gate() {
  OwnOperator own = likeFirst("gate", 2, "r c, r c -> r c");
  own.linear = {{0}};
  own.work = 4;
  own.inPlace = {{0, 0}, {1, 0}};
  own.gradient = [](const OwnGradient& g) -> std::vector<Tensor> {
    const Tensor& dy = g.resultGradients[0];
    const Tensor open = sigmoid(g.operands[1]);
    return {dy * open, dy * g.operands[0] * open * (1.0 - open)};
  };
  return own;
}

// y = x + k r of the row's number r in the whole: a part has to know where it begins. Its gradient is dy; the operator
// stands in it, so that a gradient meets itself.
inline OwnOperator addRow() {
  OwnOperator own = likeFirst("add_row", 1, "r c -> r c");
  own.origins = {{.ofResult = false, .index = 0, .dim = 0}};
  own.gradient = [](const OwnGradient& g) -> std::vector<Tensor> {
    const Tensor& dy = g.resultGradients[0];
    return {apply(addRow(), {dy}, g.attributes).front() - apply(addRow(), {0.0 * dy}, g.attributes).front()};
  };
  return own;
}

// The greatest of each row, of which a rank may have a part, or not (`whole`). What fills a pad must not be the
// greatest. Its gradient goes to where it is.
inline OwnOperator rowMax(bool whole = false) {
  OwnOperator own;
  own.name = "row_max";
  own.results = [](const std::vector<ValueType>& in, const AttributeMap&) -> absl::StatusOr<std::vector<ValueType>> {
    return std::vector<ValueType>{{{in[0].shape[0]}, in[0].type}};
  };
  own.rule = [whole](const std::vector<ValueType>&) { return whole ? "r c! -> r" : "r c+ -> r"; };
  if (whole) {
    own.padFill = {-std::numeric_limits<double>::infinity()};
  } else {
    own.reduce = {ReduceKind::kMax};
  }
  own.gradient = [](const OwnGradient& g) -> std::vector<Tensor> {
    const Tensor greatest = unsqueeze(g.results[0], 1);
    return {select(compare(g.operands[0], greatest, "ge"), unsqueeze(g.resultGradients[0], 1), 0)};
  };
  return own;
}

// More than the kernels of Weft need for products of a few elements.
inline constexpr int64_t kTurnedScratch = 1 << 20;

// y = x in the reverse order of each row, by way of a copy at the end of its scratch memory.
inline OwnOperator turned() {
  OwnOperator own = likeFirst("turned", 1, "r c! -> r c");
  own.linear = {{0}};
  own.scratchBytes = kTurnedScratch;
  own.scratchBytesPerElement = sizeof(float);
  own.gradient = [](const OwnGradient& g) -> std::vector<Tensor> {
    return {apply(turned(), {g.resultGradients[0]}).front()};
  };
  return own;
}

inline KernelRegistry ownKernels() {
  KernelRegistry kernels;
  const auto add = [&](const std::string& name, const FunctionKernel::Function& function, bool copies = false) {
    kernels.add(name, [=](const KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<Kernel>> {
      if (spec.inputs.empty() || spec.inputs[0].type != DType::kF32) {
        return absl::InvalidArgumentError(name + " takes f32 tensors");
      }
      return std::make_unique<FunctionKernel>(spec, function, copies ? kTurnedScratch + spec.outputs[0].bytes() : 0);
    });
  };
  add("gate", [](const KernelSpec& spec, const KernelArguments& args) {
    for (int64_t i = 0; i < spec.outputs[0].elements(); ++i) {
      result(args)[i] = floats(args, 0)[i] / (1 + std::exp(-floats(args, 1)[i]));
    }
  });
  add("add_row", [](const KernelSpec& spec, const KernelArguments& args) {
    const int64_t columns = spec.outputs[0].shape[1];
    const auto k = static_cast<float>(attributeOr<double>(spec.attributes, "k", 1).value());
    for (int64_t i = 0; i < spec.outputs[0].elements(); ++i) {
      result(args)[i] = floats(args, 0)[i] + k * static_cast<float>(args.scalars[0] + i / columns);
    }
  });
  add("row_max", [](const KernelSpec& spec, const KernelArguments& args) {
    const int64_t columns = spec.inputs[0].shape[1];
    for (int64_t r = 0; r < spec.outputs[0].elements(); ++r) {
      const float* row = floats(args, 0) + r * columns;
      result(args)[r] = *std::max_element(row, row + columns);
    }
  });
  add(
      "turned",
      [](const KernelSpec& spec, const KernelArguments& args) {
        const int64_t columns = spec.outputs[0].shape[1];
        auto* copy = static_cast<float*>(args.workspace) + kTurnedScratch / sizeof(float);
        std::copy_n(floats(args, 0), spec.outputs[0].elements(), copy);
        for (int64_t i = 0; i < spec.outputs[0].elements(); ++i) {
          const int64_t row = i / columns * columns;
          result(args)[i] = copy[row + columns - 1 - (i - row)];
        }
      },
      true);
  return kernels;
}

}  // namespace weft::testing
