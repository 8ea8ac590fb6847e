// What the ordered state adds to the local one.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace weft {

// The calls of every submesh, and the room of its channels. The functions have passed checkLocal, or
// checkLocalWithCopies.
mlir::LogicalResult checkCalls(mlir::ModuleOp module);

}  // namespace weft
