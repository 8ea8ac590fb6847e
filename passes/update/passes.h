// Phase `update`: the optimizer as operators on device state.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

std::unique_ptr<mlir::Pass> createBuildUpdatePass();

}  // namespace weft
