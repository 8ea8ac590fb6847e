// Operators of the annotated state as readers of values: where they run, and what they read.
#pragma once

#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "planner/step/place.h"

namespace weft {

// The place an operator of the annotated state names in its attributes.
Place placeOf(mlir::Operation* op);
void setPlace(mlir::Operation* op, const Place& place);

// The gather policy of the argument behind a value, held on this mesh or another; kNone where an operator makes it.
GatherPolicy gatherOf(mlir::Value value, const Decisions& decisions);

// The function @step; an error on the module if it has none (any more).
mlir::FailureOr<mlir::func::FuncOp> stepOf(mlir::ModuleOp module);

// "matmul reads operand 1", for people.
std::string reasonOf(mlir::Operation* reader, unsigned operand);

}  // namespace weft
