// A predicted step as a file that trace viewers read (chrome://tracing, Perfetto): Chrome's trace event format.
//
// One row for each submesh, whose ranks all do the same: the prologue, the actions of the schedule as its simulation
// has them (planner/schedule/simulate.h), the update; one more row for the collectives that run beside them, where the
// plan overlaps, and one for what it sends to other submeshes. An action is named by what it does and to which
// micro-batch: "1F3" is the forward pass of stage 1. Times are microseconds from the start of the step; the last update
// ends when the step does.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"

namespace weft::tools {

// Errors: a schedule that cannot be.
absl::StatusOr<std::string> traceOf(const Decisions& decisions, const StepTimes& step);

}  // namespace weft::tools
