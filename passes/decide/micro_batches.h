// Micro-batches as a time axis: which operators run once per micro-batch, which factor of each carries the batch.
//
// The batch enters at the inputs (their nn.batch_dim) and flows along factors. An operator that reduces the batch
// leaves a *partial* sum over the micro-batches; linear operators pass it on; any other use needs the accumulated
// value, which exists only after the last micro-batch: such operators run in the update. If a per-micro-batch operator
// needs an accumulated value (the count of valid tokens), the operators that make it are copied into the prologue,
// which sees the whole batch; that is possible when they depend on inputs only, otherwise the program mixes
// micro-batches and is refused at that operator's line.
//
// An operator that keeps a sum for each micro-batch (a factor marked `~`, see ir/layout/rule.h) leaves no partial sum:
// its
// result carries the batch in the dimension that counts the micro-batches.
//
// With one micro-batch there is nothing to accumulate: only the batch factors are followed.
#pragma once

#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/decisions.h"

namespace weft {

struct OperatorMicroBatches {
  int batch = -1;              // factor that carries the batch, -1 none
  bool perMicroBatch = false;  // runs once per micro-batch
  bool after = false;          // needs accumulated values
};

struct MicroBatchAnalysis {
  llvm::DenseMap<mlir::Operation*, OperatorMicroBatches> operators;
  llvm::DenseMap<mlir::Value, int> batchDim;  // values without an entry carry no batch
  // Operands that must move to the prologue before the analysis holds; empty when it does.
  std::vector<Rewrite> needed;
};

// Analyses @step for a number of micro-batches. Errors are reported on the operator that mixes micro-batches.
mlir::FailureOr<MicroBatchAnalysis> analyzeMicroBatches(mlir::func::FuncOp step, int64_t microBatches);

// Copies the operators behind operand `rewrite.operand` of operator `rewrite.id` into the prologue (marked nn.prologue)
// and makes the operand read the copies. Fails if it depends on a parameter.
mlir::LogicalResult hoistToPrologue(mlir::func::FuncOp step, const Rewrite& rewrite);

// The function an operator runs in.
RunsIn runsIn(mlir::Operation* op, const OperatorMicroBatches& microBatches);

}  // namespace weft
