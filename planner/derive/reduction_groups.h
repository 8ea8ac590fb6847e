// One reduction per gradient: which contributions to it are to be added first, so that sums partial over the same ranks
// are reduced together.
#pragma once

#include <vector>

#include "planner/derive/propagation.h"

namespace weft {

// The groups in which the terms of the sum that `op` ends (planner/graph/sums.h) are best added, those partial alike
// first; nothing where that saves no reduction, or where the sum is no gradient on one stage.
std::vector<std::vector<unsigned>> reductionGroups(const SettledGraph& graph, const Propagation& propagation, int op);

}  // namespace weft
