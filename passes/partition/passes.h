// Phase `partition`: from decisions to what one rank computes.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// logical -> annotated: gives every value its layout, makes every change of layout a dist.reshard, and masks the pads
// that an operator would reduce over.
std::unique_ptr<mlir::Pass> createInsertReshardsPass();

// annotated -> annotated: backward operators that read results marked `dist.recompute` read copies made in the backward
// pass instead.
std::unique_ptr<mlir::Pass> createRecomputePass();

// annotated -> local: cuts @step into @prologue, @forward, @backward and @update, lowers reshards to the planner's
// collectives, and replaces global by local shapes and origins.
std::unique_ptr<mlir::Pass> createLocalizePass();

// local -> local: each backward function becomes input_grad and weight_grad, if the schedule runs them apart.
std::unique_ptr<mlir::Pass> createSplitBackwardPass();

}  // namespace weft
