#include "kernels/cpu/support.h"

#include <algorithm>

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

std::string tensorText(const TensorSpec& tensor) {
  return absl::StrCat(dtypeName(tensor.type), " ", shapeText(tensor.shape));
}

absl::Status checkArity(const KernelSpec& spec, const Arity& arity) {
  const bool inputs = spec.inputs.size() >= arity.inputs && spec.inputs.size() <= arity.inputs + arity.optionalInputs;
  if (inputs && spec.outputs.size() == arity.outputs && spec.scalars == arity.scalars) {
    return absl::OkStatus();
  }
  const std::string optional =
      arity.optionalInputs > 0 ? absl::StrCat(" to ", arity.inputs + arity.optionalInputs) : "";
  return invalid(spec, "takes ", arity.inputs, optional, " inputs, ", arity.outputs, " outputs and ", arity.scalars,
                 " scalars, it was given ", spec.inputs.size(), ", ", spec.outputs.size(), " and ", spec.scalars);
}

KernelFactory withArity(const Arity& arity, KernelFactory factory) {
  return [arity, factory = std::move(factory)](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, arity));
    return factory(spec);
  };
}

absl::Status checkTensor(const KernelSpec& spec, const std::string& what, const TensorSpec& given,
                         const TensorSpec& expected) {
  if (given.type != expected.type || given.shape != expected.shape) {
    return invalid(spec, what, " is ", tensorText(given), ", it must be ", tensorText(expected));
  }
  return absl::OkStatus();
}

absl::Status checkInput(const KernelSpec& spec, size_t i, const TensorSpec& expected) {
  return checkTensor(spec, absl::StrCat("input ", i), spec.inputs[i], expected);
}

absl::Status checkOutput(const KernelSpec& spec, size_t i, const TensorSpec& expected) {
  return checkTensor(spec, absl::StrCat("output ", i), spec.outputs[i], expected);
}

absl::Status checkDims(const KernelSpec& spec, const TensorSpec& given, size_t dims) {
  if (given.shape.size() < dims) {
    return invalid(spec, "needs at least ", dims, " dimensions, it was given ", tensorText(given));
  }
  return absl::OkStatus();
}

absl::Status readPair(const KernelSpec& spec, const std::string& name, int64_t least, int64_t (&pair)[2]) {
  WEFT_ASSIGN_OR_RETURN(const Ints values, attribute<Ints>(spec.attributes, name));
  if (values.size() != 2 || values[0] < least || values[1] < least) {
    return invalid(spec, name, " are ", shapeText(values), ", they must be two numbers of at least ", least);
  }
  std::copy_n(values.begin(), 2, pair);
  return absl::OkStatus();
}

absl::Status unsupportedType(const KernelSpec& spec, DType type) {
  return invalid(spec, "does not run on ", dtypeName(type));
}

Ints withoutLast(const Ints& shape) {
  return Ints(shape.begin(), shape.empty() ? shape.end() : shape.end() - 1);
}

Rows rowsOf(const Ints& shape) {
  Rows rows;
  rows.width = shape.empty() ? 1 : shape.back();
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    rows.count *= shape[d];
  }
  return rows;
}

absl::StatusOr<Along> alongOf(const KernelSpec& spec, const TensorSpec& tensor) {
  WEFT_ASSIGN_OR_RETURN(const int64_t dim, attribute<int64_t>(spec.attributes, "dim"));
  if (dim < 0 || dim >= static_cast<int64_t>(tensor.shape.size())) {
    return invalid(spec, "works along dimension ", dim, " of ", tensorText(tensor), ", which is not there");
  }
  Along along;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    (at < dim ? along.outer : at == dim ? along.count : along.inner) *= tensor.shape[d];
    if (at != dim) {
      along.others.push_back(tensor.shape[d]);
    }
  }
  return along;
}

absl::StatusOr<Ints> broadcastStrides(const Ints& shape, const Ints& result) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", shapeText(shape), " does not broadcast to ", shapeText(result)));
  };
  if (shape.size() > result.size()) {
    return error();
  }
  const Ints own = stridesOf(shape);
  Ints strides(result.size(), 0);
  const size_t shift = result.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == result[d + shift]) {
      strides[d + shift] = own[d];
    } else if (shape[d] != 1) {
      return error();
    }
  }
  return strides;
}

}  // namespace weft::cpu
