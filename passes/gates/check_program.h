// What the logical and the annotated state have in common: one function @step of tensors, perhaps one @init of first
// values, whose attributes name arguments and operators that exist.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

// Each reports the first thing that is wrong, at its place. Whether values have layouts, and which operators of `dist`
// there are, is for the gate of the state, which can rely on the forms while it looks.

// Attributes of a form that can be read; functions of one block, of tensors and of our operators; beside @step and
// @init only private ones, the gradients of the user's own operators.
mlir::LogicalResult checkForms(mlir::ModuleOp module);
// Kinds and names of arguments and results, what they replace, the numbers of operators, and @init.
mlir::LogicalResult checkNames(mlir::ModuleOp module);

// One submesh that ends in a return, in which every operator is one of ours; its arguments are tensors.
mlir::LogicalResult checkBody(mlir::func::FuncOp function);

// A tensor that our operators could have made.
mlir::LogicalResult checkTensor(mlir::Location place, mlir::Type type);

}  // namespace weft
