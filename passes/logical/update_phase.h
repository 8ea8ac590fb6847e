// Puts what makes new values of parameters and state into the update.
//
// The forward pass may run for several micro-batches, and the backward pass reads parameters and state again: neither
// may write over them.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

// Operators of @step that only new values need get the phase `update`; a new value that others need, too, or that is an
// argument, passes through an nn.constrain of the update.
void moveIntoUpdate(mlir::func::FuncOp step);

}  // namespace weft
