// Gates: verifiers that close a state. Each names what must not be there any more.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// Logical: no layout on any type, no op of the dist dialect, every argument of @step has a kind and a name.
std::unique_ptr<mlir::Pass> createVerifyLogicalPass();
// Annotated: every tensor of @step and @init has a layout, and it divides the tensor's stored shape.
std::unique_ptr<mlir::Pass> createVerifyAnnotatedPass();
// Local: no layout, no reshard, no @step; every argument and result of every function has a dist.value.
std::unique_ptr<mlir::Pass> createVerifyLocalPass();

}  // namespace weft
