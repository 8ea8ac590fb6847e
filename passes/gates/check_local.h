// The local state, and what it becomes on the way to the plan.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace weft {

// As checkLocal, of a module whose functions may hold copies.
mlir::LogicalResult checkLocalWithCopies(mlir::ModuleOp module);

}  // namespace weft
