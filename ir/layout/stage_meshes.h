// The meshes of the submeshes, and which of them a stage's operators lie on.
//
// Meshes have numbers: that of a mesh is the first submesh which has it. With one mesh for all submeshes there is only
// number 0, and nothing in the compiler depends on stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/layout/mesh.h"

namespace weft {

// How many submeshes there are, from that of each stage.
int64_t submeshCount(const std::vector<int64_t>& submeshes);

struct StageMeshes {
  std::vector<Mesh> ofSubmesh = {Mesh()};  // one entry: that of every submesh
  std::vector<int64_t> submeshes = {0};    // of each stage

  bool same() const { return ofSubmesh.size() == 1; }
  int64_t ranks() const;  // of all submeshes
  // The number of the mesh that a submesh has, or the submesh of a stage.
  int64_t numberOfSubmesh(int64_t submesh) const;
  int64_t number(int64_t stage) const {
    return stage < static_cast<int64_t>(submeshes.size()) ? numberOfSubmesh(submeshes[stage]) : 0;
  }
  const Mesh& withNumber(int64_t number) const { return ofSubmesh[number]; }
  const Mesh& ofStage(int64_t stage) const { return ofSubmesh[number(stage)]; }
  // Some stage on the mesh of that number.
  int64_t stageWith(int64_t number) const;
};

}  // namespace weft
