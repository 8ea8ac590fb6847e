// Phases of the logical state: what a single device would run.
#pragma once

#include <memory>

#include "ir/registry.h"
#include "mlir/Pass/Pass.h"

namespace weft {

// Folds that change no bit of any result, then merges equal operators and drops unused ones.
std::unique_ptr<mlir::Pass> createSimplifyPass();

// Differentiates result 0 of @step, the loss, with respect to every parameter that is not frozen, by the gradients of
// `registry`; adds one result `grad.<parameter>` each.
std::unique_ptr<mlir::Pass> createBuildGradientsPass(const ir::OperatorRegistry& registry);

// Replaces nn.batch_norm and its gradient by operators with statistics of each micro-batch; the mesh says how many
// micro-batches there are. A batch that leaves a micro-batch without rows is an error.
std::unique_ptr<mlir::Pass> createExpandBatchNormPass();

// Appends the optimizer as operators on device state: norm and clipping of the gradients, the update of each parameter.
std::unique_ptr<mlir::Pass> createBuildUpdatePass();

}  // namespace weft
