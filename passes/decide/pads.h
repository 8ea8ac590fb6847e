// Pads: dimensions that are stored longer than the tensor is, so that they divide evenly.
//
// Three sources: the batch of the inputs (to a multiple of data-parallel ranks x micro-batches), a pad written in a
// parameter's layout, and ZeRO on a parameter none of whose dimensions divides. From there a pad spreads to every
// dimension that shares a factor, so no operator ever sees two lengths of one factor; partition masks what reduces over
// it.
#pragma once

#include "ir/layout/layout.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

// The stored global shape of every value of a function; equal to the type's shape where nothing is padded.
class StoredShapes {
 public:
  const Shape& of(mlir::Value value) const { return shapes_.find(value)->second; }
  bool padded(mlir::Value value) const;
  void set(mlir::Value value, Shape shape) { shapes_[value] = std::move(shape); }
  std::vector<Shape> operands(mlir::Operation* op) const;
  std::vector<Shape> results(mlir::Operation* op) const;

 private:
  llvm::DenseMap<mlir::Value, Shape> shapes_;
};

// Spreads the pads of the listed argument shapes (argument index to stored shape) over the function. Errors: two pads
// of different length meet (names the operator), a pad inside a compound dimension, a constant that would need one.
mlir::FailureOr<StoredShapes> spreadPads(mlir::func::FuncOp function, const llvm::DenseMap<unsigned, Shape>& arguments);

}  // namespace weft
