// Micro-batches as a time axis: which operators run once per micro-batch, which factor of each carries the batch.
//
// The batch enters at the inputs (their batch dimension) and flows along factors. An operator that reduces the batch
// leaves a *partial* sum, maximum or minimum over the micro-batches; linear operators pass sums on; any other use needs
// the accumulated value, which exists only after the last micro-batch: such operators run in the update. If a
// per-micro-batch operator needs an accumulated value (the count of valid tokens), the operators that make it are
// copied into the prologue, which sees the whole batch; that is possible when they depend on inputs only, otherwise the
// program mixes micro-batches and is refused at that operator's line.
//
// An operator that keeps a sum for each micro-batch (a factor marked `~`, see ir/layout/rule.h) leaves no partial sum:
// its result carries the batch in the dimension that counts the micro-batches.
//
// With one micro-batch there is nothing to accumulate: only the batch factors are followed.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/rule.h"
#include "planner/decisions.h"
#include "planner/graph/graph_view.h"

namespace weft {

struct OperatorMicroBatches {
  int batch = -1;              // factor that carries the batch, -1 none
  bool perMicroBatch = false;  // runs once per micro-batch
  bool after = false;          // needs accumulated values
};

struct MicroBatchAnalysis {
  std::vector<OperatorMicroBatches> operators;
  std::vector<int> batchDim;  // of each value; -1: it carries no batch
  // Operands that must move to the prologue before the analysis holds; empty when it does.
  std::vector<Rewrite> needed;
};

// `stages`: of each operator. Errors are at the line of the operator that mixes micro-batches.
absl::StatusOr<MicroBatchAnalysis> analyzeMicroBatches(const GraphView& view, const std::vector<int64_t>& stages,
                                                       int64_t microBatches);

// The function an operator runs in.
RunsIn runsIn(const GraphOperator& op, const OperatorMicroBatches& microBatches);

// The rule of an operator over the shapes of the graph, or over others of its operands and results. An error is a
// defect of the operator's facts, or shapes that they do not fit.
absl::StatusOr<Rule> ruleOf(const GraphView& view, int op);
absl::StatusOr<Rule> ruleOver(const GraphView& view, int op, const std::vector<Shape>& operands,
                              const std::vector<Shape>& results);

}  // namespace weft
