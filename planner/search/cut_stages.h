// Cuts the segments of a program into pipeline stages, so that the longest stage is as short as can be within memory.
//
// A stage takes segments that follow one another. What it needs is the sum of what they need, activations as many times
// as the schedule holds micro-batches there (pipeline_shape.h). Where that exceeds the stage's part of the limit, as
// much is recomputed as makes it fit, the cheapest bytes first, in parts of a saving if need be. Where submeshes are of
// several kinds of devices, a stage has the costs and the limit of the kind of its submesh, so the slower have fewer
// segments.
//
// Stages of one submesh share its limit. While each is looked for by itself, by what stages of equal length would need
// there; of stages that are given, that is recomputed which saves most for its time in whichever of them: a stage that
// holds more micro-batches saves more bytes of a rank for the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "planner/search/pipeline_shape.h"
#include "planner/search/plan_space.h"
#include "planner/search/segment_costs.h"
#include "planner/search/segment_sums.h"

namespace weft {

// What the segments need on the submeshes of a pipeline.
struct SubmeshCosts {
  std::vector<SegmentCosts> kinds;   // on submeshes of each kind
  std::vector<int64_t> kindOf = {};  // of each submesh; empty: all are of the first
  std::vector<int64_t> limits = {};  // bytes of a rank of each kind, 0: none; empty: one limit for all

  SubmeshCosts() = default;
  SubmeshCosts(SegmentCosts costs) : kinds({std::move(costs)}) {}  // NOLINT: they may be the same everywhere

  int64_t numberOf(int64_t submesh) const { return kindOf.empty() ? 0 : kindOf[submesh]; }
};

// What all segments would take on a submesh as fast as all of them are in the mean, of costs of one segment; hardly too
// much.
SegmentCost meanOf(const SubmeshCosts& costs);

// A plan, as far as it can be told from its segments.
struct StageCut {
  std::vector<int> first;   // of each stage: its first segment
  std::vector<int> meshes;  // of each submesh: which of its choices (MeshChoices) it has
  Picoseconds longest = 0;  // of a stage, of one micro-batch
  int64_t busiest = 0;      // the submesh that has most to do
  Picoseconds time = 0;     // of a step, an estimate
  // No cut and no schedule makes these segments take less on as many submeshes, as long as what works on inputs alone
  // runs where it is read.
  Picoseconds bound = 0;
  int64_t peakBytes = 0;  // of the rank that needs most, an estimate
  bool fits = false;
  double excess = 0;     // where limits differ: by how much more than its limit a rank needs, in parts of it
  bool limited = false;  // does the limit make it longer?
};

// What the segments need on each of several meshes, and which of these each submesh may have. Schedules that put
// several stages on a submesh have one choice for all.
struct MeshChoices {
  std::vector<std::shared_ptr<const SummedCosts>> costs;
  std::vector<std::vector<int>> ofSubmesh;
  std::vector<int64_t> limits = {};  // bytes of a rank of each choice, 0: none; empty: one limit for all
};
// Of each kind of submeshes.
std::vector<std::shared_ptr<const SummedCosts>> summedOf(const SubmeshCosts& costs);
// Each submesh has that of its kind. `summed`: of `costs`, for all shapes.
MeshChoices choicesOf(const SubmeshCosts& costs, std::vector<std::shared_ptr<const SummedCosts>> summed,
                      const PipelineShape& shape);

// The cut with the shortest longest stage of those that fit; 0 as the limit: all do. Where none fits, stages of as many
// segments each. Where submeshes have several stages, from there on, and from the cut with the shortest longest stage
// if nothing were recomputed, segments move from the busiest submesh to others as long as that helps; the better
// counts. shape.stages() is at most the number of segments.
StageCut cutStages(const SubmeshCosts& costs, const PipelineShape& shape, int64_t limit);
// The same where submeshes choose their meshes: each has the one on which its stage is shortest within the memory.
StageCut cutStages(const MeshChoices& choices, const PipelineShape& shape, int64_t limit);

// The same for stages that are given by the first segment of each.
StageCut withStages(const SubmeshCosts& costs, const PipelineShape& shape, int64_t limit, std::vector<int> first);
StageCut withStages(const MeshChoices& choices, const PipelineShape& shape, int64_t limit, std::vector<int> first);

// The first segment of each stage where all have as many segments as can be.
std::vector<int> evenStages(int64_t segments, int64_t stages);

// What a cut into stages would come to if the segments, `all` of them together, could be cut anywhere, none shorter
// than `longest`: hardly above what cutStages finds under the shapes that the pipeline is loose of, and quick to ask.
// Its `first` stays empty.
StageCut fluidCut(const SegmentCost& all, Picoseconds longest, const LoosePipeline& pipeline, int64_t limit);

}  // namespace weft
