// Phase `partition`: from decisions to what one rank computes.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// logical -> annotated, in six steps.
// Gives every value its layout, every operator its place, and says beside each operator how it reads its operands.
std::unique_ptr<mlir::Pass> createAssignLayoutsPass();
// Brings values of one mesh to the operators of another that read them: a dist.transfer, or a copy of their generator.
std::unique_ptr<mlir::Pass> createInsertTransfersPass();
// Makes every change of layout a dist.reshard.
std::unique_ptr<mlir::Pass> createInsertReshardsPass();
// Sends what replaces an argument to every mesh that holds it.
std::unique_ptr<mlir::Pass> createSendUpdatesPass();
// Masks the pads that an operator would reduce over.
std::unique_ptr<mlir::Pass> createMaskPadsPass();
// Marks what the backward pass computes again.
std::unique_ptr<mlir::Pass> createMarkRecomputePass();

// annotated -> annotated: backward operators that read results marked `dist.recompute` read copies made in the backward
// pass instead.
std::unique_ptr<mlir::Pass> createRecomputePass();

// annotated -> local, in three steps.
// Cuts @step into @prologue, @forward, @backward and @update, for each submesh; shapes stay global, layouts stay.
std::unique_ptr<mlir::Pass> createCutFunctionsPass();
// Lowers reshards to the planner's collectives.
std::unique_ptr<mlir::Pass> createLowerReshardsPass();
// Replaces global by local shapes, and gives operators their origins.
std::unique_ptr<mlir::Pass> createLocalizeShapesPass();

// local -> local: each backward function becomes input_grad and weight_grad, if the schedule runs them apart.
std::unique_ptr<mlir::Pass> createSplitBackwardPass();

}  // namespace weft
