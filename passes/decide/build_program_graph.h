// The program graph (planner/graph/program_graph.h) of a module's @step: the one place that turns IR into what the
// planner knows.
#pragma once

#include "absl/status/status.h"
#include "ir/registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/graph/program_graph.h"

namespace weft {

// `registry`: whose expansions become alternatives (each is run in a scratch block); null: none. Errors, on the
// operator: it is of no registered dialect, its rule does not fit its shapes, its strategy is no strategy, its
// expansion fails.
mlir::FailureOr<ProgramGraph> buildProgramGraph(mlir::func::FuncOp step, const ir::OperatorRegistry* registry);

// What an operator says of itself, at the shapes it has. Errors, on the operator, as above.
mlir::FailureOr<OperatorFacts> factsOf(mlir::Operation* op);

// Reports an error of the planner at the user's line, else on the module.
void emitPlannerError(mlir::ModuleOp module, const absl::Status& status);

}  // namespace weft
