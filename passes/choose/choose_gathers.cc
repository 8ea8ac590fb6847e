#include "passes/choose/choose_gathers.h"

#include <algorithm>

#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "planner/machine/machine.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {

namespace {

struct Trial {
  int64_t gatherBytes = -1;
  absl::Status status;
  int64_t peakBytes = 0;
  double seconds = 0;
  bool recomputes = false;
};

// What runs once per step before the first micro-batch, of the slowest submesh.
double prologueSeconds(const plan::Plan& plan, const Machine& machine) {
  double most = 0;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    double seconds = 0;
    for (const plan::Function& function : submesh->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        seconds += function.kind() == plan::PROLOGUE ? secondsOf(*submesh, instruction, machine) : 0;
      }
    }
    most = std::max(most, seconds);
  }
  return most;
}

using Compile = std::function<absl::StatusOr<plan::Plan>(int64_t gatherBytes)>;

absl::StatusOr<Trial> tryWith(int64_t gatherBytes, const Machine& machine, const Compile& compile) {
  const absl::StatusOr<plan::Plan> plan = compile(gatherBytes);
  Trial trial{gatherBytes, plan.status()};
  if (!plan.ok()) {
    return absl::IsResourceExhausted(plan.status()) ? absl::StatusOr<Trial>(trial) : plan.status();
  }
  trial.peakBytes = plan->memory().peak_bytes();
  WEFT_ASSIGN_OR_RETURN(trial.seconds, simulatedSeconds(*plan, machine));
  trial.seconds += prologueSeconds(*plan, machine);
  WEFT_ASSIGN_OR_RETURN(const Decisions record, parseDecisions(plan->decisions()));
  trial.recomputes = !record.recomputeSummary.empty();
  return trial;
}

}  // namespace

absl::StatusOr<int64_t> chooseGathers(int64_t memoryLimit, const Machine& machine, const Compile& compile) {
  WEFT_ASSIGN_OR_RETURN(Trial best, tryWith(-1, machine, compile));
  const auto keepBetter = [&](const Trial& trial) {
    const bool shorter = !best.status.ok() || trial.seconds < best.seconds;
    best = trial.status.ok() && shorter ? trial : best;
  };
  if (!best.status.ok() || best.recomputes) {
    WEFT_ASSIGN_OR_RETURN(const Trial none, tryWith(0, machine, compile));
    keepBetter(none);
    if (none.status.ok() && none.peakBytes < memoryLimit) {
      WEFT_ASSIGN_OR_RETURN(const Trial some, tryWith(memoryLimit - none.peakBytes, machine, compile));
      keepBetter(some);
    }
    WEFT_RETURN_IF_ERROR(best.status.ok() ? absl::OkStatus() : none.status);
  }
  return best.gatherBytes;
}

}  // namespace weft
