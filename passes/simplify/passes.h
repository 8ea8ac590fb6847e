// Phase `simplify`: canonical form.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// Folds that change no bit of any result, then merges equal operators and drops unused ones.
std::unique_ptr<mlir::Pass> createSimplifyPass();

}  // namespace weft
