// The plans that mode kAuto chooses among, but for the cut into stages and what each of them decides for itself: how
// many stages, on which mesh, in how many micro-batches.
//
// What the user gives is the only value of its kind here:
//   his stages, or a mesh and devices that make up a number of them
//   his mesh; of one with open sizes the sizes; his meshes of stages, on as many submeshes
//   his micro-batches
// Without a mesh its axes are dp, those that his strategies and layouts name, and tp where they name none and tensors
// may be split; they lie over the nodes of the machine in every order (axis_orders.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/mesh.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"

namespace weft {

// Of all stages together.
struct StageGrid {
  int64_t submeshes = 1;
  int64_t virtualStages = 1;
  std::string mesh;          // of one submesh; empty where the request has several
  bool isReordered = false;  // do its axes lie over nodes in another order than by default?

  int64_t stages() const { return submeshes * virtualStages; }
  friend bool operator==(const StageGrid&, const StageGrid&) = default;
};

// `userStages`: that the program names; 1 without any. `segments`: most stages that it can be cut into. Errors: devices
// that the stages and meshes that are given do not make up.
absl::StatusOr<std::vector<StageGrid>> stageGrids(const ProgramGraph& graph, const CompileOptions& request,
                                                  int64_t userStages, int64_t segments);

// Of its submeshes. Errors: of meshes that cannot be read.
absl::StatusOr<std::vector<Mesh>> meshesOf(const StageGrid& grid, const CompileOptions& request);

// Stages on each submesh: given by the request or by its kind of schedule; else 1, and 2 for what a pipeline gains.
std::vector<int64_t> virtualStageCounts(const CompileOptions& request);

struct OrderedMesh {
  std::string text;
  bool isReordered = false;
};

// The meshes of so many ranks that a submesh may have, whose mesh or its sizes `request` leaves open; of a mesh of the
// user's in his order of the axes. Errors: no sizes make up so many; a machine that cannot be read.
absl::StatusOr<std::vector<OrderedMesh>> meshesOfRanks(const ProgramGraph& graph, const CompileOptions& request,
                                                       int64_t ranks);

// Of so many submeshes at the most neighbors trade ranks (unlike_meshes.h): of more each has a small part of the whole,
// and trades gain little.
inline constexpr int64_t kMostTrading = 8;

// May submeshes have meshes of unlike shape and size (unlike_meshes.h)? Not where the user gives the mesh of any.
bool mayHaveUnlikeMeshes(const CompileOptions& request);

// The request of a plan of the space that leaves nothing open but schedule and recomputation. Where ranks may share and
// the level of ZeRO is open or above 1, at level 1: what others take follows from that. The batch's axes split the
// batch alone: of the best plans the rest is asked (free_batch_axes.h).
CompileOptions firstRequest(const CompileOptions& request, const std::string& mesh, int64_t micro, bool shares);

// A closed request of a program that trains at each level of ZeRO that `request` leaves open, at level 3 with
// parameters that are gathered once and in each call: which of both also a level that is given leaves open.
std::vector<CompileOptions> atOpenLevels(const CompileOptions& request, CompileOptions closed);

// What mode kAuto may not decide (CompileOptions::without) as the pins that say the same, where the user leaves it
// open. For the rest there are no pins: whatever decides it asks CompileOptions::may.
CompileOptions withFreedomsPinned(CompileOptions request);

// Of the smallest batch of an input; 0: no input has one.
int64_t batchRows(const ProgramGraph& graph);

// Numbers of micro-batches, ascending: those with which no row of a batch is padded on a mesh that splits it into so
// many parts; without any, 1.
std::vector<int64_t> microBatchCounts(const ProgramGraph& graph, const CompileOptions& request, int64_t parts);

// Of these the largest that is no larger than `most`, or the least.
int64_t microBatchesWithin(const ProgramGraph& graph, const CompileOptions& request, int64_t parts, int64_t most);

// Into how many parts a mesh, as text, splits the batch where nobody says otherwise; 1 for what is no mesh.
int64_t batchParts(const std::string& mesh, Fill fill);

}  // namespace weft
