// What a modeled step would need: bytes of one rank of each submesh, and seconds of the step.
//
// Regions are computed as the planner does, but taken as large as what is alive at once in them: packing seldom needs
// more. Compare two results of this model; do not take one for the bytes of a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/advise/step_model.h"
#include "planner/decisions.h"
#include "planner/machine/machine.h"

namespace weft::advise {

// How the micro-batches of a step run.
struct ScheduleConfig {
  ScheduleDecision schedule;
  int64_t microBatches = 1;
  int64_t parts = 1;  // into which each micro-batch of the plan is cut; `microBatches` counts the parts
};

struct StepNeeds {
  std::vector<int64_t> bytes;  // of each submesh: activations, transients and mailboxes
  double seconds = 0;
};

// Errors: a schedule that does not serve the numbers.
absl::StatusOr<StepNeeds> needsOf(const std::vector<SubmeshModel>& submeshes, const ScheduleConfig& config,
                                  const Machine& machine);

}  // namespace weft::advise
