// Replaces an operator by its expansion (ir/registry.h), so that a whole factor may be split.
#pragma once

#include "ir/registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

// Expands the operator with this number; new operators get new numbers.
mlir::LogicalResult expandOperator(mlir::func::FuncOp step, int64_t id, const ir::OperatorRegistry& registry);

}  // namespace weft
