// Dumps of the IR after each pass: `DIR/00-input.mlir`, `DIR/01-weft-simplify.mlir`, ... with the user's source lines.
#pragma once

#include <string>

#include "mlir/Pass/PassManager.h"

namespace weft {

void addDumps(mlir::PassManager& manager, const std::string& directory);

}  // namespace weft
