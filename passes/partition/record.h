// The decisions record that the passes of partition realize.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "planner/decisions.h"

namespace weft {

// Null, with errors on the module: it has no record, or one for other arguments.
const Decisions* recordOf(mlir::ModuleOp module);

}  // namespace weft
