// The meshes of the submeshes, and which of them a stage's operators lie on.
//
// Meshes have numbers: that of a mesh is the first submesh which has it. With one mesh for all submeshes there is only
// number 0, and nothing in the compiler depends on stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/layout/mesh.h"

namespace mlir {
class Operation;
class Value;
}  // namespace mlir

namespace weft {

// Attribute of the module: the meshes of the submeshes as text, "dp=2,tp=2;dp=4". Absent: all have dist.mesh.
inline constexpr char kStageMeshesAttr[] = "dist.stage_meshes";
// Likewise: the stripes of the batch, in each of which the micro-batches are cut (docs/sharding.md). Absent: as many
// parts as the inputs' batch has.
inline constexpr char kStripesAttr[] = "dist.stripes";

struct StageMeshes {
  std::vector<Mesh> ofSubmesh = {Mesh()};  // one entry: that of every submesh
  std::vector<int64_t> submeshes = {0};    // of each stage

  bool same() const { return ofSubmesh.size() == 1; }
  // The number of the mesh that a submesh has, or the submesh of a stage.
  int64_t numberOfSubmesh(int64_t submesh) const;
  int64_t number(int64_t stage) const {
    return stage < static_cast<int64_t>(submeshes.size()) ? numberOfSubmesh(submeshes[stage]) : 0;
  }
  const Mesh& withNumber(int64_t number) const { return ofSubmesh[number]; }
  const Mesh& ofStage(int64_t stage) const { return ofSubmesh[number(stage)]; }
  // Some stage on the mesh of that number.
  int64_t stageWith(int64_t number) const;

  // Index of the mesh that an operator runs on, or a value lives on: that of its (defining) operator's stage; for
  // function arguments and initial values, of the stage in dist.stage.
  // (In module_meshes.cc, with what needs MLIR.)
  int64_t number(mlir::Operation* op) const;
  int64_t number(mlir::Value value) const;
  const Mesh& of(mlir::Operation* op) const;
  const Mesh& of(mlir::Value value) const;
};

}  // namespace weft
