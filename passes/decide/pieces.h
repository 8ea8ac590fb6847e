// Micro-batches as a time axis: which operators run once per piece, which factor of each carries the batch.
//
// The batch enters at the inputs (their nn.batch_dim) and flows along factors. An operator that reduces the batch
// leaves a *pending* sum over the pieces; linear operators pass it on; any other use needs the accumulated value, which
// exists only after the last piece: such operators run in the update. If a per-piece operator needs an accumulated
// value (the count of valid tokens), the operators that make it are copied into the prologue, which sees the whole
// batch; that is possible when they depend on inputs only, otherwise the program mixes pieces and is refused at that
// operator's line.
//
// An operator that keeps a sum for each piece (a factor marked `~`, see ir/layout/rule.h) leaves no pending sum: its
// result carries the batch in the dimension that counts the pieces.
//
// With one piece there is nothing to accumulate: only the batch factors are followed.
#pragma once

#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/support/decisions.h"

namespace weft {

struct OperatorPieces {
  int batch = -1;         // factor that carries the batch, -1 none
  bool perPiece = false;  // runs once per piece
  bool after = false;     // needs accumulated values
};

struct PieceAnalysis {
  llvm::DenseMap<mlir::Operation*, OperatorPieces> operators;
  llvm::DenseMap<mlir::Value, int> batchDim;  // values without an entry carry no batch
  // Operands that must move to the prologue before the analysis holds; empty when it does.
  std::vector<Rewrite> needed;
};

// Analyses @step for a number of pieces. Errors are reported on the operator that mixes pieces.
mlir::FailureOr<PieceAnalysis> analysePieces(mlir::func::FuncOp step, int64_t pieces);

// Copies the operators behind operand `rewrite.operand` of operator `rewrite.id` into the prologue (marked nn.prologue)
// and makes the operand read the copies. Fails if it depends on a parameter.
mlir::LogicalResult hoistToPrologue(mlir::func::FuncOp step, const Rewrite& rewrite);

// The linear set of `op` that contains operand `i`, null if there is none. Operands of one set may be pending together.
bool linearTogether(mlir::Operation* op, unsigned operand, llvm::function_ref<bool(unsigned)> pending);

// Operators through which a pending sum is passed on: linear and no more costly than the reduction they put off. The
// piece analysis and the placing of reshards must agree on them.
bool passesSums(mlir::Operation* op);

// The function an operator runs in.
RunsIn runsIn(mlir::Operation* op, const OperatorPieces& pieces);

}  // namespace weft
