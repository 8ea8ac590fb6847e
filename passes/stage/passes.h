// Passes about when and where operators run again.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// annotated -> annotated: backward operators that read results marked `dist.recompute` read copies made in the backward
// pass instead.
std::unique_ptr<mlir::Pass> createRecomputePass();

// local -> local: each backward function becomes input_grad and weight_grad, if the schedule runs them apart.
std::unique_ptr<mlir::Pass> createSplitBackwardPass();

}  // namespace weft
