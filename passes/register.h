// All passes by their command-line names, for weft-opt.
#pragma once

#include "ir/registry.h"

namespace weft {

// Registers every pass with MLIR's table of passes. The registry of operators outlives all use of the passes.
void registerWeftPasses(const ir::OperatorRegistry& registry);

}  // namespace weft
