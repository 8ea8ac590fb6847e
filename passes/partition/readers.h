// Operators of the annotated state as readers of values: where they run, and what they read.
#pragma once

#include <map>
#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "planner/step/place.h"

namespace weft {

// The place an operator of the annotated state names in its attributes.
Place placeOf(mlir::Operation* op);
void setPlace(mlir::Operation* op, const Place& place);

// When the values of the annotated state are gathered, by a record.
class GatherPolicies {
 public:
  explicit GatherPolicies(const Decisions& decisions) : decisions_(decisions), byId_(decisionsById(decisions)) {}

  // Of the value, or of what it was before it was moved or filled.
  GatherPolicy of(mlir::Value value) const;

 private:
  const Decisions& decisions_;
  std::map<int64_t, const OperatorDecision*> byId_;
};

// The function @step; an error on the module if it has none (any more).
mlir::FailureOr<mlir::func::FuncOp> stepOf(mlir::ModuleOp module);

// "matmul reads operand 1", for people.
std::string reasonOf(mlir::Operation* reader, unsigned operand);

}  // namespace weft
