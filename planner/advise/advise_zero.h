// ZeRO as a change of a plan: what is divided over the data axes, and what that costs.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/advise/step_model.h"
#include "planner/decisions.h"
#include "planner/machine/machine.h"

namespace weft::advise {

struct ZeroChange {
  int64_t freedBytes = 0;  // of parameters, state and gradient sums of one rank
  double seconds = 0;      // more of a step than now: collectives by the machine, less update arithmetic; level 3
                           // without its gathers, which are in `submesh`
  SubmeshModel submesh;    // with the gathered parameters of level 3
};

// From the decisions' level up to `level`.
ZeroChange withZero(const SubmeshModel& submesh, const Decisions& decisions, int64_t level, const Machine& machine);

}  // namespace weft::advise
