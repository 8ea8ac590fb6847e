// A recorded run (runtime/exec/trace.h) laid on the plan that was run.
//
// A trace names operators by their label and knows nothing of functions. But a rank executes the same list of
// instructions in every step, so the events of a rank are what it initialised, then that list again and again: each
// event belongs to the instruction whose turn it is, and must have its label, kernel and piece. That is also how a
// trace of another program is found out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace weft::tools {

struct ExecutedCall {
  int64_t function = 0;
  int64_t piece = 0;
  double start = 0;  // seconds from the first event of the step on any rank
  double end = 0;
  double waiting = 0;  // of these in receives: for the sender, and for the copy
  double lead = 0;     // of these in receives before anything else
  double moving = 0;   // in collectives: the exchange, and the wait for the other ranks
};

struct TraceProfile {
  int64_t steps = 0;  // complete ones
  int64_t shown = 0;  // the step that `ranks` holds, counted from 0
  std::vector<double> stepSeconds;
  std::vector<std::vector<ExecutedCall>> ranks;  // of the shown step
  // Seconds of one call of an instruction, by block, function, instruction: the mean over ranks, pieces and steps, but
  // without the first step (which touches memory for the first time) if there are others. Functions that no step calls
  // have zeros.
  std::vector<std::vector<std::vector<double>>> seconds;
};

// `text`: of the trace, `source` its path. `step`: which one to show; without, the one of median length but the first.
// Errors: text that is no trace; a rank without events or above the plan's; an event that the plan has not there (with
// what it has); no complete step; a step that is not in the trace.
absl::StatusOr<TraceProfile> readTraceProfile(const std::string& text, const std::string& source,
                                              const plan::Plan& plan, std::optional<int64_t> step);

}  // namespace weft::tools
