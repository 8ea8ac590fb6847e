// The pipeline stages of a module: its submeshes, the schedule that runs them, and the stages its parts claim.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace weft {

// From the annotated state on.
mlir::LogicalResult checkStages(mlir::ModuleOp module);

}  // namespace weft
