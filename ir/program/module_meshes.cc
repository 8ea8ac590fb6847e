#include "ir/program/module_meshes.h"

#include <algorithm>

#include "ir/layout/stage_mesh_text.h"
#include "ir/program/program.h"

namespace weft {

int64_t stageOfValue(mlir::Value value) {
  mlir::IntegerAttr stage;
  if (mlir::Operation* op = value.getDefiningOp()) {
    stage = op->getAttrOfType<mlir::IntegerAttr>(kStageAttr);
  } else {
    auto argument = mlir::cast<mlir::BlockArgument>(value);
    auto function = mlir::cast<mlir::func::FuncOp>(argument.getOwner()->getParentOp());
    stage = function.getArgAttrOfType<mlir::IntegerAttr>(argument.getArgNumber(), kStageAttr);
  }
  return stage ? stage.getInt() : 0;
}

int64_t ModuleMeshes::number(mlir::Operation* op) const {
  auto stage = op->getAttrOfType<mlir::IntegerAttr>(kStageAttr);
  return same() ? 0 : number(stage ? stage.getInt() : 0);
}

int64_t ModuleMeshes::number(mlir::Value value) const {
  return same() ? 0 : number(stageOfValue(value));
}

const Mesh& ModuleMeshes::of(mlir::Operation* op) const {
  return ofSubmesh[number(op)];
}

const Mesh& ModuleMeshes::of(mlir::Value value) const {
  return ofSubmesh[number(value)];
}

mlir::FailureOr<ModuleMeshes> stageMeshesOf(mlir::ModuleOp module) {
  mlir::FailureOr<Mesh> mesh = meshOf(module);
  if (mlir::failed(mesh)) {
    return mlir::failure();
  }
  ModuleMeshes meshes;
  meshes.ofSubmesh = {*mesh};
  if (auto submeshes = module->getAttrOfType<mlir::DenseI64ArrayAttr>(kSubmeshesAttr)) {
    meshes.submeshes.assign(submeshes.asArrayRef().begin(), submeshes.asArrayRef().end());
  }
  if (meshes.submeshes.empty()) {
    module.emitError() << kSubmeshesAttr << " is empty; it has an entry for each pipeline stage";
    return mlir::failure();
  }
  auto text = module->getAttrOfType<mlir::StringAttr>(kStageMeshesAttr);
  if (!text) {
    return meshes;
  }
  absl::StatusOr<std::vector<Mesh>> own = parseStageMeshes(text.getValue().str(), mesh->microBatches());
  if (!own.ok()) {
    module.emitError(std::string(own.status().message()));
    return mlir::failure();
  }
  const auto [least, most] = std::minmax_element(meshes.submeshes.begin(), meshes.submeshes.end());
  const bool fits = *least >= 0 && *most + 1 == static_cast<int64_t>(own->size());
  if (module->hasAttr(kSubmeshesAttr) && !fits) {
    module.emitError() << "dist.stage_meshes has " << own->size() << " meshes, dist.submeshes is for " << *most + 1
                       << " submeshes";
    return mlir::failure();
  }
  const bool differ = std::any_of(own->begin(), own->end(), [&](const Mesh& m) { return !(m == own->front()); });
  meshes.ofSubmesh = differ ? *std::move(own) : std::vector<Mesh>{own->front()};
  return meshes;
}

}  // namespace weft
