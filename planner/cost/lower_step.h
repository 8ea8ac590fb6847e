// The step programs that an annotated step becomes: one for each submesh, with the functions, transfers, collectives
// and accumulations that the compiler will make, priced on a machine.
//
// It is the cost model's reading of the step, not a second compiler: it says what memory and time a plan will need, and
// is held to the plans that are made (tests/equivalence/prediction_test.cc). It leaves out
//   - all_reduces whose readers all cut them again (form-reduce-scatter); the reshard planner makes few of those;
//   - the functions that make first values: their temporaries are smaller than a step's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/prices.h"
#include "planner/cost/submesh_functions.h"
#include "planner/machine/machine.h"
#include "planner/step/annotated_step.h"

namespace weft {

struct LoweredStep {
  std::vector<SubmeshFunctions::Finished> submeshes;
  Picoseconds transferTime = 0;  // from a stage's end to the arrival of what it sends; the longest of the micro-batches
};

// `step` is the one with copies (withCopies). `splitsBackward`: does the schedule run gradients of inputs and of
// weights apart? Errors: stages that would wait for each other.
absl::StatusOr<LoweredStep> lowerStep(const GraphView& view, const Decisions& decisions, const AnnotatedStep& step,
                                      bool splitsBackward, Prices& prices);

}  // namespace weft
