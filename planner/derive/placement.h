// Where operators run: pipeline stages and the meshes of the submeshes that own them.
//
// The user's scopes come first (`nn.stage` on forward operators). What they leave open follows the data: a forward
// operator runs where the last of its operands is made; what works on a parameter on the first of the parameter's
// stages from there on, where it has some; if nothing makes an operand of it on stage 0. What has no operands, or
// prepares inputs, runs where it is first read. A backward operator runs with its forward operator, a sum of gradients
// where the first of them is made (the stage of the value whose gradient they form). An update runs where its parameter
// is first read, everything else in the update where the largest of its operands is made, of several the first.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/stage_meshes.h"
#include "planner/graph/graph_view.h"

namespace weft {

struct Stages {
  std::vector<int64_t> ofOperator;
  int64_t count = 1;  // 1 without any word of the user
};

// Errors, at the user's lines: a negative stage, a stage without any operator, a forward operator that reads a later
// stage (both named).
// `ofParameters`: stages by name (CompileOptions::stages).
absl::StatusOr<Stages> assignStages(const GraphView& view,
                                    const std::map<std::string, std::vector<int64_t>>& ofParameters);

// Operators on stages, stages on meshes.
struct Placement {
  std::vector<int64_t> stages;  // of each operator
  StageMeshes meshes;

  // The number of the mesh that an operator runs on, and the mesh.
  int64_t meshNumber(int op) const { return meshes.number(stages[op]); }
  const Mesh& meshOf(int op) const { return meshes.withNumber(meshNumber(op)); }
};

// Numbers of the meshes whose operators read a value.
std::set<int64_t> readingMeshes(const GraphView& view, const Placement& placement, int value);

}  // namespace weft
