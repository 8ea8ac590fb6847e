// The gradient of a user's own operator: a function of the module, written with tensors when the graph was built
// (frontend/own_operator.cc), of which the operators that the wanted gradients need are copied to where the call's
// gradient stands.
#include "ir/nn/gradients/gradients.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace weft::ir {

namespace {

bool isFloat(mlir::Value value) {
  return llvm::isa<mlir::FloatType>(llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType());
}

// The operands whose gradients the function returns.
llvm::ArrayRef<int64_t> gradientOf(nn::CustomOp op) {
  return op.getGradientOf().value_or(llvm::ArrayRef<int64_t>());
}

// The function's arguments: operands, results, the gradients of results of float types.
llvm::SmallVector<mlir::Value> argumentsOf(nn::CustomOp op, GradientContext& context, Emitter& emit) {
  llvm::SmallVector<mlir::Value> arguments(op->getOperands());
  llvm::append_range(arguments, op->getResults());
  for (auto [result, gradient] : llvm::zip(op->getResults(), context.resultGradients)) {
    if (isFloat(result)) {
      arguments.push_back(gradient ? gradient : emit.make<nn::FillOp>(result.getType(), 0.0));
    }
  }
  return arguments;
}

mlir::LogicalResult checkFunction(nn::CustomOp op, mlir::func::FuncOp function) {
  const auto error = [&] { return op->emitError() << kindOf(op) << ": its gradient, @" << *op.getGradient() << ", "; };
  if (!function || function.isDeclaration()) {
    return error() << "is no function of the module";
  }
  llvm::SmallVector<mlir::Type> wanted(op->getOperandTypes());
  llvm::append_range(wanted, op->getResultTypes());
  for (mlir::Value result : op->getResults()) {
    if (isFloat(result)) {
      wanted.push_back(result.getType());
    }
  }
  if (!sameShapesAndElements(function.getArgumentTypes(), wanted)) {
    return error() << "does not take its operands, results and gradients of results";
  }
  llvm::SmallVector<mlir::Type> made;
  for (const int64_t operand : gradientOf(op)) {
    made.push_back(op->getOperand(operand).getType());
  }
  if (!sameShapesAndElements(function.getResultTypes(), made)) {
    return error() << "does not return one gradient for each operand of gradient_of, of the operand's type";
  }
  return mlir::success();
}

// The operators of the function on which the values depend.
llvm::DenseSet<mlir::Operation*> neededFor(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Value> values) {
  llvm::DenseSet<mlir::Operation*> needed;
  const auto need = [&](mlir::Value value) {
    if (mlir::Operation* maker = value.getDefiningOp()) {
      needed.insert(maker);
    }
  };
  llvm::for_each(values, need);
  for (mlir::Operation& op : llvm::reverse(function.getBody().front())) {
    if (needed.contains(&op)) {
      llvm::for_each(op.getOperands(), need);
    }
  }
  return needed;
}

mlir::LogicalResult customGradient(nn::CustomOp op, Emitter& emit, GradientContext& context) {
  if (!op.getGradient()) {
    return op->emitError() << kindOf(op)
                           << " has no gradient, and the loss depends on a parameter through it; give "
                              "OwnOperator::gradient, or use stopGradient";
  }
  auto function = mlir::SymbolTable::lookupNearestSymbolFrom<mlir::func::FuncOp>(op, op.getGradientAttr());
  if (mlir::failed(checkFunction(op, function))) {
    return mlir::failure();
  }
  mlir::IRMapping copies;
  copies.map(function.getArguments(), argumentsOf(op, context, emit));
  llvm::SmallVector<mlir::Value> wanted;
  for (auto [i, operand] : llvm::enumerate(gradientOf(op))) {
    if (context.wanted[operand]) {
      wanted.push_back(returned(function, i));
    }
  }
  const llvm::DenseSet<mlir::Operation*> needed = neededFor(function, wanted);
  for (mlir::Operation& part : function.getBody().front().without_terminator()) {
    if (needed.contains(&part)) {
      context.builder.clone(part, copies)->removeAttr(kIdAttr);
    }
  }
  for (auto [i, operand] : llvm::enumerate(gradientOf(op))) {
    if (context.wanted[operand]) {
      context.operandGradients[operand] = copies.lookup(returned(function, i));
    }
  }
  return mlir::success();
}

}  // namespace

void addCustomGradients(OperatorRegistry& registry) {
  addGradient<nn::CustomOp>(registry, customGradient);
}

}  // namespace weft::ir
