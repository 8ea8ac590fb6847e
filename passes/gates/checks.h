// What the gates check, as functions: each reports the first errors it finds, at the place, with both values.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace weft {

mlir::LogicalResult checkLogical(mlir::ModuleOp module);
mlir::LogicalResult checkLaidOut(mlir::ModuleOp module);
mlir::LogicalResult checkAnnotated(mlir::ModuleOp module);
mlir::LogicalResult checkCut(mlir::ModuleOp module);
mlir::LogicalResult checkLocal(mlir::ModuleOp module);
// Each of these includes the one before, and the first includes what checkLocal checks; only copies are no part of the
// local and the ordered state. A module that passes the last can be emitted as a plan.
mlir::LogicalResult checkOrdered(mlir::ModuleOp module);
mlir::LogicalResult checkStored(mlir::ModuleOp module);
mlir::LogicalResult checkScheduled(mlir::ModuleOp module);

}  // namespace weft
