// The program graph of a module's @step for any number of micro-batches, as the planner asks for it.
#pragma once

#include <map>
#include <memory>

#include "passes/decide/build_program_graph.h"
#include "planner/search/choose_plan.h"

namespace weft {

// Where no expansion asks for the number of micro-batches, one graph serves all. `step`, and `registry`, live as long
// as what is returned. Errors: of buildProgramGraph, at the user's line (sourcePlaceOf); they are not emitted.
GraphFor graphSource(mlir::func::FuncOp step, const ir::OperatorRegistry& registry, int64_t rowParts);

}  // namespace weft
