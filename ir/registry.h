// The operator registry: what the compiler knows of operators beyond their dialect entry. It is an object that is
// passed along; a user adds his own operators to it before compiling.
//
// Adding an operator touches three places: its `.td` entry (ir/nn), its gradient here, its kernel (kernels/).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace weft::ir {

// What a gradient function works with. `builder` inserts at the end of the backward graph with the location of the
// forward operator. Every op it creates is marked as belonging to that forward operator and, where its factors carry
// the forward rule's names and sizes, starts with the forward operator's factor axes.
struct GradientContext {
  mlir::OpBuilder& builder;
  // Gradient of each result of the forward operator; null where none flows (not differentiable, or unused).
  llvm::SmallVector<mlir::Value> resultGradients;
  // To fill: gradient of each operand; null for one that has none (integer ids) or is not needed.
  llvm::SmallVector<mlir::Value> operandGradients;
  // Is the gradient of operand i wanted? Work for others may be left out.
  llvm::SmallVector<bool> wanted;
};

using GradientFunction = std::function<mlir::LogicalResult(mlir::Operation*, GradientContext&)>;

// What an expansion may know beside the operator: what the request fixes. The program itself has neither number.
class ExpansionContext {
 public:
  ExpansionContext() = default;
  ExpansionContext(int64_t microBatches, int64_t rowParts) : microBatches_(microBatches), rowParts_(rowParts) {}

  // Of a step.
  int64_t microBatches() const {
    asked_ = true;
    return microBatches_;
  }
  // A multiple of every number of ranks that may split the batch, or another dimension. Where it times microBatches
  // divides the rows, none of them is padding.
  int64_t rowParts() const { return rowParts_; }
  // Has any expansion asked for the number of micro-batches? If not, all would be the same with another.
  bool asked() const { return asked_; }

 private:
  int64_t microBatches_ = 1;
  int64_t rowParts_ = 1;
  mutable bool asked_ = false;
};

// Rewrites an operator into operators that stand for it: returns the replacement values, one for each result, of the
// same types. Taken where a layout splits a factor that the operator's own rule needs whole (`!`), or always, if the
// operator says that it must be expanded (OperatorInterface::mustExpand).
//
// The new operators get name, stage and phase of the operator, but for those that the function itself marks as of the
// update (nn.phase), as they run once per step. What the user says of an operand (nn.strategy) counts for each of them
// that reads it in the operator's own phase. The gradient of one that must be expanded becomes that of the operator
// that makes result 0. Where everything that reads a result must be
// expanded, too, the value may have another type, such as one of a size that depends on the number of micro-batches:
// the readers' expansions see it.
using ExpansionFunction = std::function<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
    mlir::Operation*, mlir::OpBuilder&, const ExpansionContext&)>;

class OperatorRegistry {
 public:
  // All operators of the nn dialect.
  static OperatorRegistry builtin();

  void addGradient(const std::string& op, GradientFunction gradient) { gradients_[op] = std::move(gradient); }
  void addExpansion(const std::string& op, ExpansionFunction expansion) { expansions_[op] = std::move(expansion); }
  // Null if the operator has none.
  const GradientFunction* gradient(mlir::Operation* op) const;
  // Null if the operator has none, or no use of it: it need not be expanded, and its rule marks no factor `!`.
  const ExpansionFunction* expansion(mlir::Operation* op) const;

 private:
  std::map<std::string, GradientFunction> gradients_;
  std::map<std::string, ExpansionFunction> expansions_;
};

}  // namespace weft::ir
