// The form of each attribute of the compiler, on modules, functions, arguments, results and operators.
//
// Later passes read attributes without asking again. So a module from a file is refused here if one of ours is of
// another form, holds a number or word it cannot hold, or bears a name that nobody reads. What a request asks for is
// not judged here, only that it can be read.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

// Checks the attributes of the module itself.
mlir::LogicalResult checkModuleAttributes(mlir::ModuleOp module);
// Checks those of a function, its arguments and its results.
mlir::LogicalResult checkFunctionAttributes(mlir::func::FuncOp function);
mlir::LogicalResult checkOperatorAttributes(mlir::Operation* op);

}  // namespace weft
