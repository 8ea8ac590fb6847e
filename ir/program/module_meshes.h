// The meshes of the submeshes (stage_meshes.h), read from a module.
#pragma once

#include "ir/layout/stage_meshes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

// The stage of an operator, or the owner stage of an argument; 0 if it has none.
int64_t stageOfValue(mlir::Value value);

// The meshes of a module's operators and values.
struct ModuleMeshes : StageMeshes {
  ModuleMeshes() = default;
  ModuleMeshes(StageMeshes meshes) : StageMeshes(std::move(meshes)) {}  // NOLINT: the same meshes

  using StageMeshes::number;
  // Number of the mesh that an operator runs on, or a value lives on: that of its (defining) operator's stage; for
  // function arguments and initial values, of the stage in dist.stage.
  int64_t number(mlir::Operation* op) const;
  int64_t number(mlir::Value value) const;
  const Mesh& of(mlir::Operation* op) const;
  const Mesh& of(mlir::Value value) const;
};

// Reads the stage meshes from dist.mesh, dist.stage_meshes and dist.submeshes. Error, on the module op: an attribute is
// missing or malformed.
mlir::FailureOr<ModuleMeshes> stageMeshesOf(mlir::ModuleOp module);

}  // namespace weft
