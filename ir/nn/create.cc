#include "ir/nn/create.h"

#include "ir/nn/nn.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

namespace weft::ir {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

// Number of operands of operators with a fixed number; ODS records it as a trait.
std::optional<unsigned> fixedOperands(mlir::RegisteredOperationName name) {
  if (name.hasTrait<mlir::OpTrait::ZeroOperands>()) {
    return 0;
  }
  if (name.hasTrait<mlir::OpTrait::OneOperand>()) {
    return 1;
  }
  if (name.hasTrait<mlir::OpTrait::NOperands<2>::Impl>()) {
    return 2;
  }
  if (name.hasTrait<mlir::OpTrait::NOperands<3>::Impl>()) {
    return 3;
  }
  if (name.hasTrait<mlir::OpTrait::NOperands<4>::Impl>()) {
    return 4;
  }
  if (name.hasTrait<mlir::OpTrait::NOperands<5>::Impl>()) {
    return 5;
  }
  if (name.hasTrait<mlir::OpTrait::NOperands<6>::Impl>()) {
    return 6;
  }
  return std::nullopt;
}

// The variadic ones: least number of operands.
unsigned leastOperands(mlir::RegisteredOperationName name) {
  if (name.hasTrait<mlir::OpTrait::AtLeastNOperands<3>::Impl>()) {
    return 3;
  }
  if (name.hasTrait<mlir::OpTrait::AtLeastNOperands<4>::Impl>()) {
    return 4;
  }
  return name.hasTrait<mlir::OpTrait::AtLeastNOperands<6>::Impl>() ? 6 : 0;
}

LogicalResult checkOperands(mlir::RegisteredOperationName name, mlir::Location location, mlir::ValueRange operands) {
  std::optional<unsigned> fixed = fixedOperands(name);
  unsigned least = fixed.value_or(leastOperands(name));
  if (fixed ? operands.size() != *fixed : operands.size() < least) {
    return mlir::emitError(location) << name.getStringRef() << " takes " << (fixed ? "" : "at least ") << least
                                     << " operands, not " << operands.size();
  }
  for (mlir::Value operand : operands) {
    if (!llvm::isa<mlir::RankedTensorType>(operand.getType())) {
      return mlir::emitError(location) << name.getStringRef() << " takes tensors, not " << operand.getType();
    }
  }
  return success();
}

// A detached operator without results: holds the attributes with defaults filled in, where inference reads them.
struct Draft {
  Draft(mlir::RegisteredOperationName name, mlir::Location location, mlir::ValueRange operands,
        mlir::NamedAttrList attributes)
      : op(mlir::Operation::create(location, name, mlir::TypeRange(), operands, std::move(attributes), nullptr)) {}
  ~Draft() { op->destroy(); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  mlir::Operation* op;
};

// What inference reads has to be there; of other operators the verifier says what is missing. `global_shape` is the
// only attribute of these that may be absent: partition adds it.
LogicalResult checkAttributes(mlir::RegisteredOperationName name, mlir::Operation* draft) {
  if (name.getInterface<mlir::InferTypeOpInterface>() == nullptr) {
    return success();
  }
  for (mlir::StringAttr required : name.getAttributeNames()) {
    if (!draft->getAttr(required) && required.getValue() != "global_shape") {
      return mlir::emitError(draft->getLoc())
             << name.getStringRef() << " needs the attribute '" << required.getValue() << "'";
    }
  }
  return success();
}

LogicalResult inferResults(mlir::RegisteredOperationName name, mlir::Operation* draft,
                           llvm::SmallVectorImpl<mlir::Type>& types) {
  auto* inference = name.getInterface<mlir::InferTypeOpInterface>();
  if (inference == nullptr) {
    return mlir::emitError(draft->getLoc()) << name.getStringRef() << " needs its result type";
  }
  return inference->inferReturnTypes(draft->getContext(), draft->getLoc(), draft->getOperands(),
                                     draft->getAttrDictionary(), draft->getPropertiesStorage(), {}, types);
}

}  // namespace

mlir::FailureOr<mlir::Operation*> createOperator(mlir::OpBuilder& builder, mlir::Location location,
                                                 llvm::StringRef mnemonic, mlir::ValueRange operands,
                                                 mlir::NamedAttrList attributes, mlir::TypeRange results) {
  std::string full = ("nn." + mnemonic).str();
  std::optional<mlir::RegisteredOperationName> name = mlir::RegisteredOperationName::lookup(full, builder.getContext());
  if (!name) {
    mlir::emitError(location) << "there is no operator " << full;
    return failure();
  }
  if (failed(checkOperands(*name, location, operands)) ||
      failed(name->verifyInherentAttrs(attributes, [&] { return mlir::emitError(location); }))) {
    return failure();
  }
  Draft draft(*name, location, operands, attributes);
  mlir::OperationState state(location, *name);
  state.addOperands(operands);
  state.attributes = attributes;
  state.addTypes(results);
  if (failed(checkAttributes(*name, draft.op)) ||
      (results.empty() && failed(inferResults(*name, draft.op, state.types)))) {
    return failure();
  }
  mlir::Operation* op = builder.create(state);
  if (failed(name->verifyInvariants(op))) {
    op->erase();
    return failure();
  }
  return op;
}

}  // namespace weft::ir
