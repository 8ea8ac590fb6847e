// The annotated program as the graphs on which recomputation is chosen: one per stage, with bytes of one rank and one
// micro-batch and seconds on the machine.
#pragma once

#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "planner/decisions.h"
#include "planner/machine/machine.h"
#include "planner/recompute/graph.h"

namespace weft {

struct StageGraph {
  recompute::Graph graph;
  std::vector<mlir::Operation*> operators;  // of the annotated @step, by index in the graph
  std::vector<mlir::Value> values;
};

// The stages of a module in the annotated state, before the recompute pass, as graphs. Operators, reshards and masks of
// the forward pass all become operators of the graph; those that the record recomputes already (the user's scopes) may
// not be kept. Operators whose result is partial over the micro-batches, is sent to another stage or is a result of the
// step are never recomputed.
mlir::FailureOr<std::vector<StageGraph>> stageGraphs(mlir::ModuleOp module, const Decisions& decisions,
                                                     const Machine& machine);

}  // namespace weft
