#include "kernels/cpu/support.h"

namespace weft::cpu {
namespace {

class FunctionKernel : public Kernel {
 public:
  FunctionKernel(RunFunction run, int64_t workspace) : run_(std::move(run)), workspace_(workspace) {}
  absl::Status run(const KernelArguments& args) override { return run_(args); }
  int64_t workspaceBytes() const override { return workspace_; }

 private:
  RunFunction run_;
  int64_t workspace_;
};

}  // namespace

KernelOr makeKernel(RunFunction run, int64_t workspaceBytes) {
  return std::unique_ptr<Kernel>(std::make_unique<FunctionKernel>(std::move(run), workspaceBytes));
}

absl::Status checkCounts(const KernelSpec& spec, size_t inputs, size_t outputs) {
  if (spec.inputs.size() != inputs || spec.outputs.size() != outputs) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", spec.name, " takes ", inputs, " inputs and ", outputs,
                                                   " outputs, it was given ", spec.inputs.size(), " and ",
                                                   spec.outputs.size()));
  }
  return absl::OkStatus();
}

absl::Status checkSameShape(const KernelSpec& spec, const TensorSpec& a, const TensorSpec& b) {
  if (a.shape != b.shape) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", spec.name, " needs equal shapes, it was given ",
                                                   shapeText(a.shape), " and ", shapeText(b.shape)));
  }
  return absl::OkStatus();
}

absl::Status checkScalars(const KernelSpec& spec, size_t count) {
  if (spec.scalars != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", spec.name, " takes ", count, " scalars, it was given ", spec.scalars));
  }
  return absl::OkStatus();
}

absl::Status unsupportedType(const KernelSpec& spec, DType type) {
  return absl::InvalidArgumentError(absl::StrCat("kernel ", spec.name, " does not run on ", dtypeName(type)));
}

std::vector<int64_t> stridesOf(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * shape[d];
  }
  return strides;
}

absl::StatusOr<std::vector<int64_t>> broadcastStrides(const std::vector<int64_t>& shape,
                                                      const std::vector<int64_t>& result) {
  if (shape.size() > result.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", shapeText(shape), " does not broadcast to ", shapeText(result)));
  }
  const std::vector<int64_t> own = stridesOf(shape);
  std::vector<int64_t> strides(result.size(), 0);
  const size_t shift = result.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == result[d + shift]) {
      strides[d + shift] = own[d];
    } else if (shape[d] != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", shapeText(shape), " does not broadcast to ", shapeText(result)));
    }
  }
  return strides;
}

}  // namespace weft::cpu
