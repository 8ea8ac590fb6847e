// What functions of local shapes say of each other, of ranks and of the host: names, groups, scalars, named tensors.
// What would make a plan inconsistent is refused here, where there is still a source line to name.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace weft {

// The functions have passed their own checks (check_local.cc).
mlir::LogicalResult checkNumbers(mlir::ModuleOp module);

}  // namespace weft
