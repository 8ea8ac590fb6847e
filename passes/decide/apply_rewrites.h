// Makes the rewrites of a decisions record in a module, as planner/graph/rewrites.h makes them in the program graph:
// the graph built of the result equals the planner's.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/decide/expansions.h"
#include "planner/decisions.h"

namespace weft {

// Makes them in order, and erases what nothing reads. New operators get new ids. Errors: an operator that a rewrite
// names is not there, or has no expansion; a copy in the prologue would depend on a parameter; an operator is left that
// must be expanded.
mlir::LogicalResult applyRewrites(mlir::func::FuncOp step, const std::vector<Rewrite>& rewrites,
                                  const Expansions& expansions);

}  // namespace weft
