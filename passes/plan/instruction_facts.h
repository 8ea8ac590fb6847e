// What the plan, and the memory it is given, must know of an operation of the local state.
#pragma once

#include <optional>

#include "kernels/describe/kernel_spec.h"
#include "mlir/IR/Operation.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

TensorSpec tensorSpec(mlir::Value value);

// The kernel call of an operation that is no collective, send or receive.
KernelSpec kernelSpecOf(mlir::Operation* op);

// Which collective the operation is, if any.
std::optional<plan::CollectiveKind> collectiveKindOf(mlir::Operation* op);

}  // namespace weft
