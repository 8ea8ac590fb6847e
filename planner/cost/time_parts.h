// What the time of a step goes to.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost/function_time.h"

namespace weft {

// Seconds of one step, of the submesh that is busiest. All but `hidden` add up to the step.
struct TimeParts {
  double computation = 0;        // of the micro-batches: kernels and copies, each as if it ran alone
  double communication = 0;      // of the micro-batches: by how much longer they take because of their collectives
  double bubble = 0;             // while it waits for other stages, transfers included, or for a core (SharedCores)
  double once = 0;               // before and after the micro-batches, each on the submesh that takes longest
  double hidden = 0;             // of the collectives of the whole step: beside computation
  double onceCommunication = 0;  // of `once`: by how much longer it takes because of collectives
  double onceOffload = 0;        // of `once`: of copies to and from the host, as far as they are not hidden
  double offloadHidden = 0;      // of these copies: beside computation

  double sum() const { return computation + communication + bubble + once; }
};

// `submeshes`: the functions of each. The step is one of so many micro-batches, whose time the schedule's simulation
// says. Of a program that does not train, whose stages run one after another, the longest stage stands for all.
TimeParts timeParts(const std::vector<std::vector<FunctionTime>>& submeshes, int64_t microBatches, double stepSeconds);

}  // namespace weft
