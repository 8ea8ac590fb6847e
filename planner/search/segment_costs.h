// What each segment of a program needs on one mesh: the blocks of which the search puts plans together.
//
// The program is predicted as a pipeline with one stage for each segment, all of them on meshes of the same shape
// (step_model.h). What a stage of several segments needs is then the sum of what they need: the layouts are decided
// for all of them together, as they are without stages, and only what passes between two segments of one stage is
// counted though it is not sent.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/step_model.h"
#include "planner/graph/program_graph.h"
#include "planner/machine/picoseconds.h"
#include "planner/request.h"
#include "planner/search/planning_memo.h"

namespace weft {

// Recomputation that keeps so many bytes less of each micro-batch and takes so long.
struct Saving {
  int64_t bytes = 0;
  Picoseconds time = 0;

  friend bool operator==(const Saving&, const Saving&) = default;
};

// Does a byte of `a` cost less?
bool isCheaper(const Saving& a, const Saving& b);

// Of one rank, times and activations of one micro-batch.
struct SegmentCost {
  Picoseconds time = 0;      // forward and backward
  Picoseconds onceTime = 0;  // before and after the micro-batches
  // For the whole step:
  int64_t parameterBytes = 0;
  int64_t gradientBytes = 0;
  int64_t stateBytes = 0;  // of the optimizer, on the device
  int64_t heldBytes = 0;   // inputs, outputs and the rest
  // Of the optimizer's state in the host's memory (planner/cost/offload_state.h), if the request asks for it; as if the
  // host had room for all:
  Picoseconds offloadTime = 0;  // of its copies, once in a step, beside onceTime
  int64_t bufferBytes = 0;      // on the device for it, at the largest of the segments of a stage
  PassedBytes activations;      // from forward to backward; between its halves where it is cut
  int64_t passingBytes = 0;     // transients and scratch of one function
  std::vector<Saving> savings;  // of activations, the cheapest byte first; empty where nothing may be recomputed

  // Of both one after the other.
  SegmentCost& operator+=(const SegmentCost& more);
  // Everything that stays for the whole step.
  int64_t bytesOfStep() const { return parameterBytes + gradientBytes + stateBytes + heldBytes; }
};

struct SegmentCosts {
  std::vector<SegmentCost> segments;
  // The same where gradients of weights run later than those of inputs; empty where no schedule may do so.
  std::vector<SegmentCost> cutSegments;
  Picoseconds transfer = 0;  // of what passes between segments, the longest
  // As cutSegments, with gathers that run again for gradients of weights (gradient_gathers.h); empty: there are none.
  std::vector<SegmentCost> gatheringSegments = {};

  std::array<std::vector<SegmentCost>*, 3> all() { return {&segments, &cutSegments, &gatheringSegments}; }
};

// Of all segments as one.
SegmentCosts together(const SegmentCosts& costs);

// What a byte is worth in a step of that time under that limit, in picoseconds: as if all of the memory cost as much
// as the step, rounded to a power of two, so that steps of about the same time have the same price; and the multiples
// of it that are tried.
double memoryPrice(Picoseconds stepTime, int64_t limit);
inline constexpr double kMemoryPrices[] = {1, 8};

// By which part of the least cost the splits of a sketch, and of what is predicted with its price of memory, may be
// above it: sketches are no closer to what they are predicted to take.
inline constexpr double kSlackOfSketches = 0.001;

// `staged`: each forward operator that works on parameters names its segment as its stage. `request` leaves nothing
// open but schedule and recomputation; its memory limit and its numbers of devices are not asked. Errors: as
// deriveDecisions.
// Where splits do not divide, with the pads of arguments with which they do if the step is shorter so.
// `bytePrice`: of memory, where splits are decided by price. `memo`: of the request's machine.
absl::StatusOr<SegmentCosts> segmentCosts(const ProgramGraph& staged, const CompileOptions& request, double bytePrice,
                                          PlanningMemo& memo);

}  // namespace weft
