// The meshes of the blocks of ranks (stage_meshes.h), read from a module.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/support/stage_meshes.h"

namespace weft {

// The stage of an operator, or the home stage of an argument; 0 if it has none.
int64_t stageOfValue(mlir::Value value);

// Of a module that says its blocks (dist.blocks); an error on the module op if an attribute is missing or malformed.
mlir::FailureOr<StageMeshes> stageMeshesOf(mlir::ModuleOp module);

}  // namespace weft
