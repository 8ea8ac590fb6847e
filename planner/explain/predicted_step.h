// How long the parts of a step take that is planned, not compiled: what its predicted time is the sum of.
#pragma once

#include "absl/status/statusor.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "planner/graph/program_graph.h"
#include "planner/machine/machine.h"

namespace weft {

// By the model of the step (planner/cost/step_model.h). `graph`: the program without the record's rewrites. Errors:
// decisions about another program.
absl::StatusOr<StepTimes> predictedStep(const ProgramGraph& graph, const Decisions& decisions, const Machine& machine);

}  // namespace weft
