// What runs in the update: finished gradients, and what makes new values of parameters and state.
//
// The forward pass may run for several micro-batches, and the backward pass reads parameters and state again: neither
// may write over them.
#pragma once

#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace weft {

// Does what makes the value run in that phase, "backward" or "update"? Not where it is an argument.
bool isMadeIn(mlir::Value value, llvm::StringRef phase);

// The gradient of a parameter through an nn.constrain marked nn.gradient_of, where it is summed over the batch and gets
// the layout of the optimizer's state.
mlir::Value finishGradient(mlir::OpBuilder& builder, mlir::Value gradient, const std::string& parameter);

// Operators of @step that only new values need get the phase `update`; a new value that others need, too, or that is an
// argument, passes through an nn.constrain of the update.
void moveIntoUpdate(mlir::func::FuncOp step);

}  // namespace weft
