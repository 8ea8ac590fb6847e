// Phase `grad`: the backward graph.
#pragma once

#include <memory>

#include "ir/registry.h"
#include "mlir/Pass/Pass.h"

namespace weft {

// Differentiates result 0 of @step, the loss, with respect to every parameter that is not frozen, by the gradients of
// `registry`; adds one result `grad.<parameter>` each.
std::unique_ptr<mlir::Pass> createBuildGradientsPass(const ir::OperatorRegistry& registry);

}  // namespace weft
