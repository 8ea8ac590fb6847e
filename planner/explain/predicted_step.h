// How long the parts of a step take: what its time is the sum of.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/decisions.h"
#include "planner/graph/program_graph.h"
#include "planner/machine/machine.h"
#include "planner/schedule/simulate.h"

namespace weft {

// Seconds. The step takes the longest `before`, what the schedule's simulation makes of `times`, and the longest
// `after`.
struct PredictedStep {
  schedule::Times times;              // of each stage
  std::vector<double> before, after;  // of each submesh: what runs once, before and after the micro-batches
};

// By the model of the step (planner/cost/step_model.h). `graph`: the program without the record's rewrites. Errors:
// decisions about another program.
absl::StatusOr<PredictedStep> predictedStep(const ProgramGraph& graph, const Decisions& decisions,
                                            const Machine& machine);

}  // namespace weft
