// Passes of the logical state that are made with C++ values.
#pragma once

#include <memory>

#include "ir/registry.h"
#include "mlir/Pass/Pass.h"

namespace weft {

// Differentiates by the gradients of `registry`: what the user asked for, and the loss where `ofLoss`.
std::unique_ptr<mlir::Pass> createBuildGradientsPass(const ir::OperatorRegistry& registry, bool ofLoss = true);

}  // namespace weft
