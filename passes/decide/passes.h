// Phase `decide`: the decisions record.
#pragma once

#include <memory>

#include "ir/registry.h"
#include "mlir/Pass/Pass.h"

namespace weft {

// Writes the decisions of @step into the module attribute dist.decisions: from `given` (its text form) where that is
// not empty, else from the user's words, propagation and defaults. Expands and hoists operators as decided.
std::unique_ptr<mlir::Pass> createDecidePass(const ir::OperatorRegistry& registry, std::string given = "");

}  // namespace weft
