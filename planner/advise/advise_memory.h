// What would lower the memory that a plan's rank of highest peak needs, by how much, and at what price.
//
// Everything is computed from the plan and the decisions in it: the step is read back as operators (step_model.h), the
// decision is changed, and the regions and the schedule are recomputed (step_memory.h). No model is at hand and
// nothing is compiled, so each line says what its figures rest on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

struct MemoryAdvice {
  std::string kind;        // "recompute", "schedule", "micro", "zero"
  std::string set;         // what the user would write: "--recompute h*.gelu,h*.fc"
  int64_t peakBytes = 0;   // predicted, highest over the ranks, all memory
  int64_t savedBytes = 0;  // from the peak of the plan
  double timeFactor = 1;   // predicted seconds of a step over those of the plan
  std::string basis;       // what the prediction leaves out
};

// The lines of kind "recompute" first: each holds the ones before it, the cheapest byte first, so their savings are not
// counted twice. All others stand alone, each compared with the plan as it is. Only what saves memory is listed;
// nothing for a program without a backward pass. Errors: decisions that cannot be read.
absl::StatusOr<std::vector<MemoryAdvice>> adviseMemory(const plan::Plan& plan, const Machine& machine);

}  // namespace weft
