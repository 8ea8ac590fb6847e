// C++ side of operator_interface.td, with the small types its methods use.
#pragma once

#include <optional>
#include <string>

#include "ir/layout/rule.h"
#include "ir/layout/view_kind.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Operation.h"

namespace weft::ir {

using LinearSets = llvm::SmallVector<llvm::SmallVector<unsigned, 4>, 2>;

// The global offset of dimension `dim` of an operand or result.
struct OriginRequest {
  bool isResult = false;
  unsigned index = 0;
  unsigned dim = 0;
};

// One operation per element of each result.
int64_t elementwiseFlops(mlir::Operation* op);
// So many operations, from 0 on, per element of each result; at most 2^56.
int64_t scaledFlops(mlir::Operation* op, double perElement);
// Elements of one operand.
int64_t operandElements(mlir::Operation* op, unsigned operand = 0);
// 2 x the product of all factors of a contraction's rule.
int64_t contractionFlops(mlir::Operation* op);
// 2 x the elements of y x the elements of the weight that each of them sums over.
int64_t convolutionFlops(mlir::Value y, mlir::Value weight);
// `products` matrix products of [T, D] with [D, S] per batch and head.
int64_t attentionFlops(mlir::Operation* op, int64_t products);

// Shapes of an op's tensor operands and results, for Rule::parse.
std::vector<Shape> operandShapes(mlir::Operation* op);
std::vector<Shape> resultShapes(mlir::Operation* op);
Shape shapeOf(mlir::Value value);

}  // namespace weft::ir

#include "ir/nn/operator_interface.h.inc"

namespace weft::ir {

// The parsed rule of an operator; an error is a defect of its `.td` entry and is reported on the op.
mlir::FailureOr<Rule> ruleOf(OperatorInterface op);

// The kind of an operator, by which its kernel is known: its mnemonic, or that of a user's own operator.
std::string kindOf(mlir::Operation* op);

// The view kind of any operation; kNone of one without the interface.
ViewKind viewKindOf(mlir::Operation* op);

// Must any operation be expanded? Not one without the interface.
bool mustExpand(mlir::Operation* op);

}  // namespace weft::ir
