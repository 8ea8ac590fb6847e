// Operators by name: for the frontend and the tools, which know a mnemonic and values but no C++ class.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace weft::ir {

// Creates `nn.<mnemonic>` at the builder's insertion point. Result types are inferred unless given; operators whose
// result does not follow from operands and attributes (cast, reshape, broadcast, embedding_grad, pick_grad, random,
// constant, fill, iota) need `results`. The operator is verified. On any error a diagnostic is emitted at `location`
// and nothing is left behind: unknown operator, number of operands, a missing attribute, a failed check.
mlir::FailureOr<mlir::Operation*> createOperator(mlir::OpBuilder& builder, mlir::Location location,
                                                 llvm::StringRef mnemonic, mlir::ValueRange operands,
                                                 mlir::NamedAttrList attributes = {}, mlir::TypeRange results = {});

}  // namespace weft::ir
