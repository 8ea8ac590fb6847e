// One step of a recorded run: when each rank called which function.
//
// Every whole step of the trace is held against the plan, operator by operator, so that a trace of another program is
// found out even where its functions have the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "tools/analysis/trace_file.h"

namespace weft::tools {

struct ExecutedCall {
  int64_t function = 0;
  int64_t microBatch = 0;
  double start = 0;  // seconds from the host's begin of the step
  double end = 0;
  double lead = 0;     // of these in receives before anything else
  double waiting = 0;  // in all receives: for the message, and for its copy
  double moving = 0;   // in collectives: for the other ranks, and for the exchange
};

struct ExecutedStep {
  int64_t shown = 0;                // counted from 0
  std::vector<double> stepSeconds;  // of every whole step, as the host saw it
  std::vector<std::vector<ExecutedCall>> ranks;
};

// `step`: which one; without, the one of median length, the first left aside if there are others. Errors: no whole
// step; a step that is not there; a call or an operator that the plan has not in its place (rank, both, source line).
absl::StatusOr<ExecutedStep> executedStep(const plan::Plan& plan, const Trace& trace, std::optional<int64_t> step);

}  // namespace weft::tools
