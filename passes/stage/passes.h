// Passes about when and where operators run again.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// annotated -> annotated: backward operators that read results marked `dist.recompute` read copies made in the backward
// pass instead.
std::unique_ptr<mlir::Pass> createRecomputePass();

}  // namespace weft
