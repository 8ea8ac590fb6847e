// What is known since a search began of programs on one machine.
#pragma once

#include "planner/derive/reshard_prices.h"
#include "planner/recompute/pareto.h"

namespace weft {

struct PlanningMemo {
  ReshardMemo reshards;
  recompute::KnownFronts fronts;  // of what may be recomputed
};

}  // namespace weft
