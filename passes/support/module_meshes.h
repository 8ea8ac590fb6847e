// The meshes of the submeshes (stage_meshes.h), read from a module.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/support/stage_meshes.h"

namespace weft {

// The stage of an operator, or the owner stage of an argument; 0 if it has none.
int64_t stageOfValue(mlir::Value value);

// Reads the stage meshes from dist.mesh, dist.stage_meshes and dist.submeshes. Error, on the module op: an attribute is
// missing or malformed.
mlir::FailureOr<StageMeshes> stageMeshesOf(mlir::ModuleOp module);

}  // namespace weft
