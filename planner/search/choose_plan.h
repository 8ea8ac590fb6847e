// Mode kAuto: the plan that takes the least time within the memory limit.
//
// What the user leaves open of these is searched together:
//   stages       how many, and which layers each has: the program's segments (planner/graph/segments.h) cut in a row
//   mesh         of each stage: every factorization of its devices over the axes
//   micro        the micro-batches: every divisor of the batch
//   ZeRO         every level; of the best plan also levels of single classes of weights (mix_zero.h)
//   layouts      of each of these: the splits of all operators, by elimination (planner/derive/settle_conflicts.h)
//   schedule, recomputation, gathers: as without mode kAuto (choose_schedule.h, choose_recompute.h)
//
//   1. Sketches of plans come in the order of what is expected of them (sketches.h): what each block of the program
//      needs (block_program.h), put together as stages (cut_stages.h).
//   2. The first of them become requests that leave nothing open, and are predicted as if the user had written them.
//      The best of these is taken.
// docs/auto-mode.md has the space as a grammar, and what is left out of it.
#pragma once

#include "absl/status/statusor.h"
#include "planner/request.h"
#include "planner/search/block_program.h"
#include "planner/search/choose_open.h"
#include "planner/search/search_memory.h"

namespace weft {

// The best request that `request`, in mode kAuto, may become; its record notes what it was chosen among. Errors: what
// is given cannot be together; the first reason why no plan can be. `known`: its plans are not predicted again.
absl::StatusOr<ClosedRequest> choosePlan(const GraphFor& graphs, const CompileOptions& request, const Predict& predict,
                                         const SearchKnowledge& known);

}  // namespace weft
