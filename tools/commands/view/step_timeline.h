// One step of a plan on the simulator: when each block calls which function.
//
// The table of the schedule is read off the plan's own lists of calls, so a plan that was written by hand or under a
// table of the user's is drawn as it runs. Durations are those of passes/stage/step_time.h. What runs once per step
// stands around the pieces: the pieces begin when the longest prologue is over, updates when all pieces are, since
// stages exchange gradients and norms there.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/machine.h"
#include "runtime/plan/plan.pb.h"

namespace weft::tools {

struct TimedCall {
  int64_t function = 0;
  int64_t piece = 0;
  double start = 0;  // seconds from the begin of the step
  double end = 0;
};

struct StepTimeline {
  std::vector<std::vector<TimedCall>> blocks;  // the calls of each block's step, in their order
  std::vector<double> busy;                    // of each block, in the pieces
  double prologue = 0;
  double pieces = 0;  // what simulatedSeconds() tells
  double update = 0;
  double seconds() const { return prologue + pieces + update; }
  // Idle time of the blocks in the pieces, as a share.
  double bubble() const;
};

// `plan` must be valid. Errors: calls that are no schedule, with the first defect.
absl::StatusOr<StepTimeline> simulateStep(const plan::Plan& plan, const Machine& machine);

}  // namespace weft::tools
