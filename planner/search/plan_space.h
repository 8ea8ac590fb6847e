// The plans that mode kAuto chooses among, but for the cut into stages and what each of them decides for itself: how
// many stages, on which mesh, in how many micro-batches.
//
// What the user gives is the only value of its kind here:
//   his stages, or a mesh and devices that make up a number of them
//   his mesh; of one with open sizes the sizes
//   his micro-batches
// Without a mesh its axes are dp, those that his strategies and layouts name, and tp where they name none and tensors
// may be split.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"

namespace weft {

// Of all stages together.
struct StageGrid {
  int64_t submeshes = 1;
  int64_t virtualStages = 1;
  std::string mesh;  // of one submesh; empty where the request has a mesh for each

  int64_t stages() const { return submeshes * virtualStages; }
};

// `userStages`: that the program names; 1 without any. `segments`: most stages that it can be cut into. Errors: devices
// that the stages and meshes that are given do not make up.
absl::StatusOr<std::vector<StageGrid>> stageGrids(const ProgramGraph& graph, const CompileOptions& request,
                                                  int64_t userStages, int64_t segments);

// What mode kAuto may not decide (CompileOptions::without) as the pins that say the same, where the user leaves it
// open. For the rest there are no pins: whatever decides it asks CompileOptions::may.
CompileOptions withFreedomsPinned(CompileOptions request);

// Numbers of micro-batches, ascending: those with which no row of a batch is padded on a mesh that splits it into so
// many parts; without any, 1.
std::vector<int64_t> microBatchCounts(const ProgramGraph& graph, const CompileOptions& request, int64_t parts);

}  // namespace weft
