// Which forward operators the backward pass runs again.
#pragma once

#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/support/decisions.h"
#include "passes/support/stage_meshes.h"

namespace weft {

// What patterns of the option "recompute" (planner/request.h) can name: kinds and names of forward operators.
std::vector<std::string> recomputableNames(mlir::func::FuncOp step);

// Does the backward pass compute the results of `op` again? A forward operator in a recompute scope is, unless
// something outside of the scope reads it in the forward pass (the border of the scope is kept); so is one whose name
// or mnemonic a pattern matches. Never: operators outside of the forward pass, and what another stage reads.
bool isRecomputed(mlir::Operation* op, const std::vector<std::string>& patterns);

// The record's name of a reshard or mask of the annotated state: id, index, how and stage are set.
ReshardDecision reshardEntry(mlir::Operation* op);
bool isReshardOrMask(mlir::Operation* op);

// Marks operators and reshards of the annotated @step as the record says; what it said before is forgotten.
void markRecomputed(mlir::func::FuncOp step, const Decisions& decisions);

// "forward", "backward", ...: where an operator of the annotated state runs.
llvm::StringRef runsWhere(mlir::Operation* op);
// Is a result of `op` a sum partial over the micro-batches? It is whole only after all of them: never recomputed.
bool pendsOverTime(mlir::Operation* op, const StageMeshes& meshes);
// Would the recompute pass compute `op` again for readers of its stage?
bool isRepeated(mlir::Operation* op, const StageMeshes& meshes);

}  // namespace weft
