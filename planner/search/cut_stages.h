// Cuts the segments of a program into pipeline stages, so that the longest stage is as short as can be within memory.
//
// A stage takes segments that follow one another. What it needs is the sum of what they need, activations as many times
// as the schedule has micro-batches in flight there (1F1B: as many as there are stages from it to the last). Where that
// exceeds the limit, as much is recomputed as makes it fit, at a price in proportion.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/segment_costs.h"

namespace weft {

struct PipelineShape {
  int64_t stages = 1;         // in a row, on as many submeshes as there are
  int64_t virtualStages = 1;  // on each submesh
  int64_t microBatches = 1;
  // May a schedule run the gradients of weights later than those of what is passed on (zero bubble)? Then no stage
  // waits longer than the first micro-batch's forward pass takes to reach it.
  bool splitsBackward = false;
};

// A plan, as far as it can be told from its segments.
struct StageCut {
  std::vector<int> first;   // of each stage: its first segment
  Picoseconds longest = 0;  // of a stage, of one micro-batch
  Picoseconds time = 0;     // of a step, an estimate
  Picoseconds bound = 0;    // no cut and no schedule makes these segments take less on as many submeshes
  int64_t peakBytes = 0;    // of the rank that needs most, an estimate
  bool fits = false;
  bool limited = false;  // does the limit make it longer?
};

// The cut with the shortest longest stage of those that fit; 0 as the limit: all do. Where none fits, stages of as many
// segments each. shape.stages is at most the number of segments.
StageCut cutStages(const SegmentCosts& costs, const PipelineShape& shape, int64_t limit);

// The same for stages that are given by the first segment of each.
StageCut withStages(const SegmentCosts& costs, const PipelineShape& shape, int64_t limit, std::vector<int> first);

}  // namespace weft
