// Mode kAuto: the plan that takes the least time within the memory limit.
//
// What the user leaves open of these is searched together:
//   stages       how many, and which layers each has: the program's segments (planner/graph/segments.h) cut in a row
//   mesh         of each stage: every factorization of its devices over the axes
//   micro        the micro-batches: every divisor of the batch
//   ZeRO         every level
//   layouts      of each of these: the splits of all operators, by elimination (planner/derive/settle_conflicts.h)
//   schedule, recomputation, gathers: as without mode kAuto (choose_schedule.h, choose_recompute.h)
//
//   1. For each mesh, number of micro-batches and level of ZeRO the model says what each segment needs
//      (segment_costs.h); the stages are cut, and time and memory of the whole follow (cut_stages.h).
//   2. The best of these estimates become requests that leave nothing open, and are predicted as if the user had
//      written them. The best of them is taken.
// Levels of ZeRO beyond the first save memory at a price of time: they are asked for only where that is short.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/block_program.h"
#include "planner/search/choose_open.h"

namespace weft {

// The best request that `request`, in mode kAuto, may become; its record notes what it was chosen among. Errors: what
// is given cannot be together; the first reason why no plan can be.
absl::StatusOr<ClosedRequest> choosePlan(const GraphFor& graphs, const CompileOptions& request, const Predict& predict);

}  // namespace weft
