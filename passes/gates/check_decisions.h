// Does a decisions record fit a program? What a person edited, or another program's record, is refused here, before
// insert-reshards carries it out.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/decisions.h"

namespace weft {

// `step` has gradient, update and the record's rewrites already. Errors name the argument or operator.
mlir::LogicalResult checkDecisions(mlir::func::FuncOp step, const Decisions& decisions);

}  // namespace weft
