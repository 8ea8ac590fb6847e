#include "tests/support/interpreter.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "ir/nn/kernel_attributes.h"
#include "ir/nn/nn.h"
#include "ir/nn/types.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/status.h"

namespace weft::testing {
namespace {

using Values = llvm::DenseMap<mlir::Value, HostTensor>;

std::string print(mlir::Operation* op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  op->print(out);
  return text;
}

absl::StatusOr<HostTensor> emptyTensor(mlir::Type type) {
  std::optional<DType> element = ir::dtypeOf(type);
  if (!element) {
    return absl::InvalidArgumentError("a value has an element type that Weft does not know");
  }
  llvm::ArrayRef<int64_t> shape = llvm::cast<mlir::RankedTensorType>(type).getShape();
  return HostTensor(*element, std::vector<int64_t>(shape.begin(), shape.end()));
}

TensorSpec specOf(const HostTensor& tensor) {
  return {tensor.type, tensor.shape};
}

template <typename T, typename Stored>
void copyElements(mlir::DenseElementsAttr value, HostTensor& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    T element = value.isSplat() ? value.getSplatValue<T>() : value.getValues<T>()[i];
    tensor.data<Stored>()[i] = static_cast<Stored>(element);
  }
}

absl::Status fillConstant(ir::nn::ConstantOp op, HostTensor& tensor) {
  auto value = llvm::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
  if (!value) {
    return absl::InvalidArgumentError("nn.constant: only dense values");
  }
  switch (tensor.type) {
    case DType::kF32:
      copyElements<float, float>(value, tensor);
      break;
    case DType::kF64:
      copyElements<double, double>(value, tensor);
      break;
    case DType::kI32:
      copyElements<int32_t, int32_t>(value, tensor);
      break;
    case DType::kI64:
      copyElements<int64_t, int64_t>(value, tensor);
      break;
    case DType::kBool:
      copyElements<bool, uint8_t>(value, tensor);
      break;
    default:
      return absl::InvalidArgumentError("nn.constant: no constants of " + dtypeName(tensor.type));
  }
  return absl::OkStatus();
}

// One call of a kernel with everything it points to.
class Call {
 public:
  Call(mlir::Operation* op, const Values& values) : op_(op) {
    for (mlir::Value operand : op->getOperands()) {
      const HostTensor& tensor = values.find(operand)->second;
      spec_.inputs.push_back(specOf(tensor));
      inputs_.push_back(tensor.bytes.data());
    }
  }

  absl::Status run(const KernelRegistry& kernels, std::vector<HostTensor>& results) {
    std::vector<void*> outputs;
    for (HostTensor& result : results) {
      spec_.outputs.push_back(specOf(result));
      outputs.push_back(result.bytes.data());
    }
    describe();
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, kernels.create(spec_));
    std::vector<int64_t> scalars(spec_.scalars, 0);
    std::vector<std::byte> workspace(kernel->workspaceBytes() + 64);
    auto address = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
    return kernel->run({inputs_.data(), outputs.data(), scalars.data(), reinterpret_cast<void*>(address)});
  }

 private:
  void describe() {
    spec_.name = op_->getName().stripDialect().str();
    spec_.attributes = ir::kernelAttributes(op_);
    if (auto known = llvm::dyn_cast<ir::OperatorInterface>(op_)) {
      spec_.scalars = known.getOriginRequests().size();
      if (known.needsGlobalShape()) {
        spec_.attributes["global_shape"] = spec_.outputs[0].shape;
      }
    }
  }

  mlir::Operation* op_;
  KernelSpec spec_;
  std::vector<const void*> inputs_;
};

absl::Status runOperator(mlir::Operation* op, const KernelRegistry& kernels, Values& values) {
  std::vector<HostTensor> results;
  for (mlir::Type type : op->getResultTypes()) {
    WEFT_ASSIGN_OR_RETURN(HostTensor result, emptyTensor(type));
    results.push_back(std::move(result));
  }
  absl::Status status;
  if (auto constant = llvm::dyn_cast<ir::nn::ConstantOp>(op)) {
    status = fillConstant(constant, results[0]);
  } else if (llvm::isa<ir::nn::ConstrainOp, ir::nn::StopGradientOp>(op)) {
    results[0] = values.find(op->getOperand(0))->second;
  } else {
    status = Call(op, values).run(kernels, results);
  }
  for (auto [value, result] : llvm::zip(op->getResults(), results)) {
    values[value] = std::move(result);
  }
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(print(op), ": ", status.message()));
}

std::string nameOr(mlir::Attribute attribute, const std::string& otherwise) {
  auto name = llvm::dyn_cast_or_null<mlir::StringAttr>(attribute);
  return name ? name.str() : otherwise;
}

absl::Status bindArguments(mlir::func::FuncOp function, const NamedTensors& arguments, Values& values) {
  for (mlir::BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::string name = nameOr(function.getArgAttr(index, "nn.name"), absl::StrCat("argument", index));
    auto found = arguments.find(name);
    if (found == arguments.end()) {
      return absl::InvalidArgumentError("argument '" + name + "' is missing");
    }
    WEFT_ASSIGN_OR_RETURN(HostTensor expected, emptyTensor(argument.getType()));
    if (found->second.type != expected.type || found->second.shape != expected.shape) {
      return absl::InvalidArgumentError("argument '" + name + "' has another type or shape than the function's");
    }
    values[argument] = found->second;
  }
  return absl::OkStatus();
}

}  // namespace

Interpreter::Interpreter() : kernels_(cpuKernels({.plainMatmul = true})) {}

absl::StatusOr<NamedTensors> Interpreter::run(mlir::func::FuncOp function, const NamedTensors& arguments) const {
  Values values;
  WEFT_RETURN_IF_ERROR(bindArguments(function, arguments, values));
  mlir::Block& body = function.getBody().front();
  for (mlir::Operation& op : body.without_terminator()) {
    WEFT_RETURN_IF_ERROR(runOperator(&op, kernels_, values));
  }
  NamedTensors results;
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    std::string name = nameOr(function.getResultAttr(index, "nn.name"), absl::StrCat("result", index));
    results[name] = values[value];
  }
  return results;
}

absl::StatusOr<NamedTensors> initialArguments(const Interpreter& interpreter, mlir::ModuleOp module,
                                              const NamedTensors& inputs) {
  NamedTensors arguments = inputs;
  if (auto init = module.lookupSymbol<mlir::func::FuncOp>("init")) {
    WEFT_ASSIGN_OR_RETURN(NamedTensors initial, interpreter.run(init, {}));
    arguments.merge(initial);
  }
  return arguments;
}

}  // namespace weft::testing
