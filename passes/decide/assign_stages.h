// Which pipeline stage each operator belongs to.
//
// The user's scopes come first (`nn.stage` on forward operators). What they leave open follows the data: a forward
// operator runs where the last of its operands is made; the first to work on a parameter is on stage 0; what has no
// operands, or prepares inputs, runs where it is first read. A backward
// operator runs with its forward operator, a sum of gradients where the first of them is made (the stage of the value
// whose gradient they form). An update runs where its parameter is first read, everything else in the update where the
// largest of its operands is made, of several the first.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

// Writes `dist.stage` on every operator of @step. Returns the number of stages, 1 without any word of the user. Errors:
// a negative stage, a stage without any operator, a forward operator that reads a later stage (both named).
mlir::FailureOr<int64_t> assignStages(mlir::func::FuncOp step);

}  // namespace weft
