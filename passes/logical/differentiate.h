// Reverse-mode differentiation of operators of @step: which values depend on what is asked for, and back from the value
// that is differentiated, by the gradients of the operator registry.
//
// Contributions to one value are added in the order in which they arise, those of its slices last. A value that nothing
// asks for costs nothing.
//
// Marks. Every new operator has nn.phase = "backward" and the location of the operator it stems from, and, but for the
// sums, nn.fwd = its nn.id: `decide` starts from that operator's factor axes. A sum follows the value whose gradient it
// forms, so a partial sum plus a partial sum stays partial and is reduced once.
#pragma once

#include "ir/nn/nn.h"
#include "ir/registry.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

class Differentiator {
 public:
  // Differentiates the operators before `where`, and puts the new ones there. All of them have numbers (nn.id).
  Differentiator(const ir::OperatorRegistry& registry, mlir::Operation* where);

  // The gradient of the scalar y with respect to each of `roots`, arguments of @step or results of its operators: zeros
  // where y does not depend on it. Error: an operator on the way that has no gradient, at its line.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> run(mlir::Value y, mlir::ValueRange roots);

  // The operators that lie between the roots and y.
  const llvm::DenseSet<mlir::Operation*>& differentiated() const { return differentiated_; }

 private:
  void findDependents(mlir::ValueRange roots);
  mlir::LogicalResult differentiate(mlir::Operation* op);
  void markSince(mlir::Operation* last, mlir::Operation* forward);
  void mark(mlir::Operation* op);
  void add(mlir::Value value, mlir::Value contribution);
  void joinBoxes(mlir::Value value);
  mlir::Value joined(llvm::MutableArrayRef<ir::nn::PadOp> boxes);
  mlir::Value fill(mlir::Value like, double number);

  const ir::OperatorRegistry& registry_;
  mlir::Operation* where_;
  mlir::OpBuilder builder_;
  llvm::SmallVector<mlir::Operation*> forward_;
  llvm::DenseMap<mlir::Value, mlir::Value> dependsOn_;  // value -> one of the roots, for messages
  llvm::DenseMap<mlir::Value, mlir::Value> gradients_;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<ir::nn::PadOp>> boxes_;  // contributions of slices, not added yet
  llvm::DenseSet<mlir::Operation*> differentiated_;
};

}  // namespace weft
