// The expansions of operators (ir/registry.h) as the planner and the module see them: both run them in the same
// context.
#pragma once

#include "absl/status/statusor.h"
#include "ir/registry.h"
#include "planner/request.h"

namespace weft {

struct Expansions {
  const ir::OperatorRegistry& registry;
  ir::ExpansionContext context;

  bool has(mlir::Operation* op) const { return registry.expansion(op) != nullptr; }
  // The values that stand for the results of an operator that has an expansion; `builder` makes their operators.
  // Errors, on the operator: of the expansion, or it gives another number of values than there are results.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> of(mlir::Operation* op, mlir::OpBuilder& builder) const;
};

// What the request fixes for expansions. Errors: its meshes, as checkRequest.
absl::StatusOr<ir::ExpansionContext> expansionContextOf(const CompileOptions& options);

}  // namespace weft
