// The program graph (planner/graph/program_graph.h) of a module's @step: the one place that turns IR into what the
// planner knows.
#pragma once

#include "absl/status/status.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/decide/expansions.h"
#include "planner/graph/program_graph.h"

namespace weft {

// Without alternatives. Errors, on the operator: it is of no registered dialect, its rule does not fit its shapes, its
// strategy is no strategy.
mlir::FailureOr<ProgramGraph> buildProgramGraph(mlir::func::FuncOp step);

// The expansions become alternatives; each is run in a scratch block. Errors also: an expansion fails, or gives a
// result another type and something reads it that is not expanded with it.
mlir::FailureOr<ProgramGraph> buildProgramGraph(mlir::func::FuncOp step, const Expansions& expansions);

// What an operator says of itself, at the shapes it has. Errors, on the operator, as above.
mlir::FailureOr<OperatorFacts> factsOf(mlir::Operation* op);

// The user's line in a location; none where it names no file.
SourcePlace placeOf(mlir::Location location);

// Reports an error of the planner at the user's line, else on the module.
void emitPlannerError(mlir::ModuleOp module, const absl::Status& status);

}  // namespace weft
