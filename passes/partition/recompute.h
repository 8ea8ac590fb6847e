// Which forward operators the backward pass runs again.
#pragma once

#include <string>
#include <vector>

#include "ir/program/module_meshes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/decisions.h"

namespace weft {

// The record's name of a reshard or mask of the annotated state: id, index, how and stage are set.
ReshardDecision reshardEntry(mlir::Operation* op);
bool isReshardOrMask(mlir::Operation* op);

// Marks operators and reshards of the annotated @step as the record says; what it said before is forgotten.
void markRecomputed(mlir::func::FuncOp step, const Decisions& decisions);

// "forward", "backward", ...: where an operator of the annotated state runs.
llvm::StringRef runsWhere(mlir::Operation* op);
// Is a result of `op` a sum partial over the micro-batches? It is whole only after all of them: never recomputed.
bool makesPartialOverTime(mlir::Operation* op, const ModuleMeshes& meshes);
// Would the recompute pass compute `op` again for readers of its stage?
bool isRepeated(mlir::Operation* op, const ModuleMeshes& meshes);

}  // namespace weft
