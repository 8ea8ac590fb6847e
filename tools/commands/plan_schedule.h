// `weft schedule --plan PLAN [--profile TRACE]`: a plan's own step, simulated.
#pragma once

#include "absl/status/status.h"
#include "tools/commands/flags.h"

namespace weft::tools {

// Prints stage times, simulated step and idle time, and beside them what was measured. Errors: those of readPlan,
// readProfile and simulatePlan.
absl::Status planSchedule(const Flags& flags);

}  // namespace weft::tools
