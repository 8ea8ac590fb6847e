// The meshes of the blocks of ranks, and which of them a stage's operators lie on.
//
// Meshes have numbers: that of a mesh is the first block which has it. With one mesh for all blocks there is only
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

// Attribute of the module: the meshes of the blocks as text, "dp=2,tp=2;dp=4". Absent: all have dist.mesh.
inline constexpr char kStageMeshesAttr[] = "dist.stage_meshes";
// Likewise: the segments of the batch, in each of which the pieces are cut (docs/sharding.md). Absent: as many parts as
// the inputs' batch has.
inline constexpr char kSegmentsAttr[] = "dist.segments";

struct StageMeshes {
  std::vector<Mesh> ofBlock = {Mesh()};  // one entry: that of every block
  std::vector<int64_t> blocks = {0};     // of each stage

  bool same() const { return ofBlock.size() == 1; }
  // Of a block; of a stage.
  int64_t numberOfBlock(int64_t block) const;
  int64_t number(int64_t stage) const {
    return stage < static_cast<int64_t>(blocks.size()) ? numberOfBlock(blocks[stage]) : 0;
  }
  const Mesh& withNumber(int64_t number) const { return ofBlock[number]; }
  const Mesh& ofStage(int64_t stage) const { return ofBlock[number(stage)]; }
  // Some stage on the mesh of that number.
  int64_t stageWith(int64_t number) const;

  // Of an operator by its stage, of a value by its operator's; an argument's or an initial value's home by dist.stage.
  // (In module_meshes.cc, with what needs MLIR.)
  int64_t number(mlir::Operation* op) const;
  int64_t number(mlir::Value value) const;
  const Mesh& of(mlir::Operation* op) const;
  const Mesh& of(mlir::Value value) const;
};

}  // namespace weft
