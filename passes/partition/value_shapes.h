// The stored global shape of every value of a function: with the pads that the decisions give its arguments, spread as
// the planner spreads them (planner/derive/pads.h).
#pragma once

#include "ir/layout/layout.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/decisions.h"

namespace weft {

class ValueShapes {
 public:
  const Shape& of(mlir::Value value) const { return shapes_.find(value)->second; }
  void set(mlir::Value value, Shape shape) { shapes_[value] = std::move(shape); }
  std::vector<Shape> operands(mlir::Operation* op) const;
  std::vector<Shape> results(mlir::Operation* op) const;

 private:
  llvm::DenseMap<mlir::Value, Shape> shapes_;
};

// Errors are reported at the user's line: pads that do not go together.
mlir::FailureOr<ValueShapes> storedShapes(mlir::func::FuncOp step, const Decisions& decisions);

}  // namespace weft
