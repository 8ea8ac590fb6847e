// The annotated program as the graphs on which recomputation is chosen: one per stage, with bytes of one rank and one
// micro-batch and seconds on the machine.
#pragma once

#include <vector>

#include "ir/layout/machine.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/choose/recompute_graph.h"
#include "passes/support/decisions.h"

namespace weft {

struct StageGraph {
  recompute::Graph graph;
  std::vector<mlir::Operation*> operators;  // of the annotated @step, by index in the graph
  std::vector<mlir::Value> values;
};

// Of a module in the annotated state, before the recompute pass. Operators, reshards and masks of the forward pass are
// operators of the graph alike; what the record computes again already (the user's scopes) may not be kept. Not
// repeated: sums over the pieces, and what another stage or the step's results read.
mlir::FailureOr<std::vector<StageGraph>> stageGraphs(mlir::ModuleOp module, const Decisions& decisions,
                                                     const Machine& machine);

}  // namespace weft
