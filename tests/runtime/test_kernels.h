// A registry of a few tiny kernels on f32, so that the runtime is tested apart from the real ones.
//   add: y = a + b (b may have one element)      total: y[0] = sum of x, or of its row scalars[0]
//   scalars: y[i] = scalars[i]
//   fail: error on every call                    greedy: wants 1 MiB of workspace
#pragma once

#include "kernels/kernel.h"

namespace weft {

class FunctionKernel : public Kernel {
 public:
  using Body = std::function<absl::Status(const KernelArguments&)>;
  explicit FunctionKernel(Body body, int64_t workspace = 0) : body_(std::move(body)), workspace_(workspace) {}
  absl::Status run(const KernelArguments& args) override { return body_(args); }
  int64_t workspaceBytes() const override { return workspace_; }

 private:
  Body body_;
  int64_t workspace_;
};

inline absl::StatusOr<std::unique_ptr<Kernel>> functionKernel(FunctionKernel::Body body, int64_t workspace = 0) {
  return std::make_unique<FunctionKernel>(std::move(body), workspace);
}

// Operands as a kernel wants them: so many of each, each f32 and of at least so many elements.
inline absl::Status checkOperands(const KernelSpec& spec, size_t inputs, int64_t elements) {
  if (spec.inputs.size() != inputs || spec.outputs.size() != 1) {
    return absl::InvalidArgumentError(spec.name + " was given " + std::to_string(spec.inputs.size()) + " inputs");
  }
  for (const auto* list : {&spec.inputs, &spec.outputs}) {
    for (const TensorSpec& operand : *list) {
      if (operand.type != DType::kF32 || operand.elements() < elements) {
        return absl::InvalidArgumentError(spec.name + " was given " + dtypeName(operand.type));
      }
    }
  }
  return absl::OkStatus();
}

inline KernelRegistry testKernels() {
  KernelRegistry registry;
  registry.add("add", [](const KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    WEFT_RETURN_IF_ERROR(checkOperands(spec, 2, 1));
    if (spec.inputs[1].elements() != 1) {
      WEFT_RETURN_IF_ERROR(checkOperands(spec, 2, spec.outputs[0].elements()));
    } else if (spec.inputs[0].elements() < spec.outputs[0].elements()) {
      return absl::InvalidArgumentError("add was given a short operand");
    }
    const int64_t count = spec.outputs[0].elements();
    const bool one = spec.inputs[1].elements() == 1;
    return functionKernel([=](const KernelArguments& args) {
      const float* a = static_cast<const float*>(args.inputs[0]);
      const float* b = static_cast<const float*>(args.inputs[1]);
      float* y = static_cast<float*>(args.outputs[0]);
      for (int64_t i = 0; i < count; ++i) {
        y[i] = a[i] + b[one ? 0 : i];
      }
      return absl::OkStatus();
    });
  });
  registry.add("total", [](const KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    WEFT_RETURN_IF_ERROR(checkOperands(spec, 1, 1));
    const bool oneRow = spec.scalars > 0;
    const int64_t count = spec.inputs[0].elements() / (oneRow ? spec.inputs[0].shape.at(0) : 1);
    return functionKernel([=](const KernelArguments& args) {
      float sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        sum += static_cast<const float*>(args.inputs[0])[(oneRow ? args.scalars[0] * count : 0) + i];
      }
      *static_cast<float*>(args.outputs[0]) = sum;
      return absl::OkStatus();
    });
  });
  registry.add("scalars", [](const KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    WEFT_RETURN_IF_ERROR(checkOperands(spec, 0, static_cast<int64_t>(spec.scalars)));
    const size_t count = spec.scalars;
    return functionKernel([=](const KernelArguments& args) {
      for (size_t i = 0; i < count; ++i) {
        static_cast<float*>(args.outputs[0])[i] = static_cast<float>(args.scalars[i]);
      }
      return absl::OkStatus();
    });
  });
  registry.add("fail", [](const KernelSpec&) {
    return functionKernel([](const KernelArguments&) { return absl::OutOfRangeError("index 9 of 5 rows"); });
  });
  registry.add("greedy", [](const KernelSpec&) {
    return functionKernel([](const KernelArguments&) { return absl::OkStatus(); }, 1 << 20);
  });
  return registry;
}

}  // namespace weft
